"""Model ⇄ disk: model directories (`model_dir`), files of the original (`bilm_tf`) and of others.

Nothing here runs code from a file: JSON, safetensors and HDF5, and in `readers` TensorFlow's
checkpoints and the tensors in files of PyTorch.
"""
