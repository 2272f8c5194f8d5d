"""C kernels for the CPU, from the package's wheel or compiled on first use.

    c/            source of the two libraries; constants.h is shared by C and Python
    build.py      reads structures, functions and constants from it; loads the libraries that came
                  with a wheel, one for each type of processor, or compiles and caches others
    library.py    calls a loaded library, for inference; training.py: for training
    layers.py     packed layers, for inference

Without either, or with ``ELMOKIT_NATIVE=0``, the callers use NumPy, or PyTorch in training.
"""
