"""Model ⇄ disk: model directories (`model_dir`), the original's files (`bilm_tf`), other software's.

Nothing here runs code from a file: JSON, safetensors and HDF5, and in `readers` TensorFlow's
checkpoints and the tensors in files of PyTorch.
"""
