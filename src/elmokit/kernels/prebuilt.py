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
_DOT = frozenset({"asimddp"})
_DOT_BF16 = _DOT | {"bf16"}


@dataclass(frozen=True)
class Variant:
    """Processors for which a library is compiled."""

    name: str
    machine: str
    """As in the platform tags of wheels: ``x86_64`` or ``aarch64``."""
    processor: str
    """As zig names it."""
    instructions: frozenset[str] = frozenset()
    """That a processor must have, as Linux names them in ``/proc/cpuinfo``."""


VARIANTS = (
    Variant(
        "x86-64-v4-amx", "x86_64",
        "x86_64_v4+avx512vnni+avx512bf16+amx_tile+amx_bf16+amx_int8", _AMX,
    ),
    Variant("x86-64-v4-bf16", "x86_64", "x86_64_v4+avx512vnni+avx512bf16", _BF16),
    Variant("x86-64-v4-vnni", "x86_64", "x86_64_v4+avx512vnni", _VNNI),
    Variant("x86-64-v4", "x86_64", "x86_64_v4", _V4),
    Variant("x86-64-v3", "x86_64", "x86_64_v3", _V3),
    Variant("x86-64-v2", "x86_64", "x86_64_v2", _V2),
    Variant("armv8.2-a-bf16", "aarch64", "generic+v8_2a+dotprod+bf16", _DOT_BF16),
    Variant("armv8.2-a-dotprod", "aarch64", "generic+v8_2a+dotprod", _DOT),
    Variant("armv8-a", "aarch64", "generic"),
)  # fmt: skip
"""The quickest first."""
ASKED = {
    "Windows": {41: _V4, 40: _V3, 38: _V2, 43: _DOT},
    "Darwin": {"avx2_0": _V3, "arm.FEAT_BF16": _DOT_BF16, "arm.FEAT_DotProd": _DOT},
}
"""Features that systems without ``/proc/cpuinfo`` are asked for, the most first: numbers of
`IsProcessorFeaturePresent`, names below ``hw.optional`` of `sysctlbyname`.
"""


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
    names = {"AMD64": "x86_64", "arm64": "aarch64", "ARM64": "aarch64"}
    machine = names.get(platform.machine(), platform.machine())
    here = _instructions()
    return tuple(v for v in VARIANTS if v.machine == machine and v.instructions <= here)


def _instructions() -> frozenset[str]:
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        features = ASKED.get(platform.system(), {})
        return next((names for feature, names in features.items() if _has(feature)), _V2)
    lines = info.read_text(errors="replace").splitlines()
    starts = ("flags", "Features")  # of x86 and ARM
    return frozenset(next((line for line in lines if line.startswith(starts)), "").split())


def _has(feature: int | str) -> bool:
    if isinstance(feature, int):
        return bool(getattr(ctypes, "windll").kernel32.IsProcessorFeaturePresent(feature))  # noqa: B009
    value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    name = f"hw.optional.{feature}".encode()
    failed = ctypes.CDLL(None).sysctlbyname(
        name, ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return not failed and bool(value.value)
