"""C kernels for the CPU, compiled on first use.

    c/            source of the two libraries; constants.h is shared by C and Python
    interface.py  structures, functions and constants, parsed from it
    build.py      compiles and caches the libraries
    library.py    calls a loaded library
    inference.py  training.py  the two libraries
    layers.py  matrices.py     packed layers and matrices, for inference

Without a compiler, or with ``ELMOKIT_NATIVE=0``, the callers use PyTorch.
"""
