"""The compiled kernels as other processors have them, too."""

import ctypes
import os
import platform
from pathlib import Path

import pytest

from elmokit.kernels import build
from elmokit.kernels.build import read_interface

PROCESSORS = {
    "this one": None,
    "no matrix unit": "-march=native -mno-amx-tile -mno-amx-bf16 -mno-amx-int8",
    "256 bits": "-march=x86-64-v3",
    "128 bits": "-march=x86-64",
}
"""Compiler flags that stand for other processors; this one must be able to run them."""


def kernels_of(processor, loaded, name, tmp_path_factory):
    """The kernels ``loaded`` from the library ``name``, as one of the processors has them.

    All processes of one test session share what they compile.
    """
    if loaded is None:
        pytest.skip("no C compiler on this machine")
    flag = PROCESSORS[processor]
    if flag is None:
        return loaded
    if platform.machine() != "x86_64" or loaded.vector_length < 8:
        pytest.skip("this processor cannot stand for the other")
    if "mno-amx" in flag and "amx_tile" not in Path("/proc/cpuinfo").read_text("utf-8"):
        pytest.skip("this processor has no matrix unit itself")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "NATIVE_FLAGS", (tuple(flag.split()),))
        session_dir = tmp_path_factory.getbasetemp()
        if "PYTEST_XDIST_WORKER" in os.environ:
            session_dir = session_dir.parent
        patched.setenv("XDG_CACHE_HOME", str(session_dir / "kernels"))
        library = ctypes.CDLL(str(build.find_compiled(name)))
        other = type(loaded)(library, read_interface(name))
    lengths = {"no matrix unit": loaded.vector_length, "256 bits": 8, "128 bits": 4}
    assert other.vector_length == lengths[processor]
    assert not getattr(other, "has_matrix_unit", False)
    return other
