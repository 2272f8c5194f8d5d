"""Model ⇄ disk: model directories (`model_dir`) and the original's files (`bilm_tf`).

Nothing here runs code from a file: JSON, safetensors and HDF5 only.
"""
