"""Compiled kernels for the processor: built on first use, never needed.

    c/            the C source: inference.c and training.c with their headers; lstm_cell.h is the
                  cell, constants.h what C and Python share
    interface.py  structures, functions and constants, read from that source
    build.py      compiles it with the machine's own compiler, keeps and checks the libraries
    library.py    calls of a loaded library
    inference.py  training.py  the two libraries
    layers.py  matrices.py     packed layers and matrices, for inference

Where nothing can be compiled, or with ``ELMOKIT_NATIVE=0``, the callers use PyTorch.
"""
