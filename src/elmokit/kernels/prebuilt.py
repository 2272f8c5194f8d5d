"""Kernel libraries that came with the package: a wheel for a platform has one per processor type.

They lie in ``prebuilt/`` beside a manifest, written by ``recipes/build_wheels.py``; a source
install has none. A library is used if it was built from the present sources and is whole.
"""

import ctypes
import functools
import hashlib
import json
import logging
import platform
from dataclasses import dataclass
from pathlib import Path

from elmokit.kernels.interface import read_interface

log = logging.getLogger(__name__)

PREBUILT_DIR = Path(__file__).parent / "prebuilt"
MANIFEST = "manifest.json"
"""``sources``: library name -> `source_hash`; ``libraries``: file name -> SHA-256 of its bytes."""

_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_VNNI = _V4 | {"avx512_vnni"}
_BF16 = _VNNI | {"avx512_bf16"}
_AMX = _BF16 | {"amx_tile", "amx_bf16", "amx_int8"}
_V4_FLAGS = ("-march=x86-64-v4",)
_BF16_FLAGS = (*_V4_FLAGS, "-mavx512vnni", "-mavx512bf16")
_ZEN_FLAGS = (*_BF16_FLAGS, "-mtune=znver3")  # bf16 without AMX: nearly always a Zen 4 or 5
_AMX_FLAGS = (*_BF16_FLAGS, "-mamx-tile", "-mamx-bf16", "-mamx-int8")


@dataclass(frozen=True)
class Variant:
    """Processors for which a library is compiled."""

    name: str
    machine: str
    """As in the platform tags of wheels: ``x86_64`` or ``aarch64``."""
    flags: tuple[str, ...]
    """For gcc and clang."""
    instructions: frozenset[str] = frozenset()
    """That a processor must have, as Linux names them in ``/proc/cpuinfo``."""


VARIANTS = (
    Variant("x86-64-v4-amx", "x86_64", _AMX_FLAGS, _AMX),
    Variant("x86-64-v4-bf16", "x86_64", _ZEN_FLAGS, _BF16),
    Variant("x86-64-v4-vnni", "x86_64", (*_V4_FLAGS, "-mavx512vnni"), _VNNI),
    Variant("x86-64-v4", "x86_64", _V4_FLAGS, _V4),
    Variant("x86-64-v3", "x86_64", ("-march=x86-64-v3",), _V3),
    Variant("x86-64-v2", "x86_64", ("-march=x86-64-v2",), _V2),
    Variant("armv8-a", "aarch64", ("-march=armv8-a",)),
)  # fmt: skip
"""The quickest first."""
_WINDOWS_FEATURES = {41: _V4, 40: _V3, 38: _V2}
"""Numbers of `IsProcessorFeaturePresent` for AVX-512, AVX2 and SSE 4.2."""


def source_hash(name: str) -> str:
    """Return the SHA-256 of a library's C source with all its includes."""
    return hashlib.sha256(read_interface(name).source.encode()).hexdigest()


def library_file(name: str, variant: Variant, system: str) -> str:
    """Return the file name of a library; ``system`` as `platform.system` returns it."""
    return f"{name}-{variant.name}{'.dll' if system == 'Windows' else '.so'}"


def find_prebuilt(name: str) -> Path | None:
    """Return the quickest library for this processor, or None if there is no suitable one."""
    path = PREBUILT_DIR / MANIFEST
    if not path.is_file():
        return None
    manifest = json.loads(path.read_text(encoding="utf-8"))
    if manifest["sources"].get(name) != source_hash(name):
        log.info("the kernels in %s were built from other sources: not used", PREBUILT_DIR)
        return None
    for variant in _variants_here():
        library = PREBUILT_DIR / library_file(name, variant, platform.system())
        digest = manifest["libraries"].get(library.name)
        if digest is None:
            continue
        if library.is_file() and hashlib.sha256(library.read_bytes()).hexdigest() == digest:
            return library
        log.warning("%s is missing or damaged: install elmokit again", library)
        return None
    return None


@functools.cache
def _variants_here() -> tuple[Variant, ...]:
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    here = _instructions()
    return tuple(v for v in VARIANTS if v.machine == machine and v.instructions <= here)


def _instructions() -> frozenset[str]:
    """Return the names of this processor's instructions."""
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        windows = getattr(ctypes, "windll", None)
        has = (lambda _: False) if windows is None else windows.kernel32.IsProcessorFeaturePresent
        return next((names for number, names in _WINDOWS_FEATURES.items() if has(number)), _V2)
    lines = info.read_text(errors="replace").splitlines()
    return frozenset(next((line for line in lines if line.startswith("flags")), "").split())
