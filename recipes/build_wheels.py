"""Build wheels with compiled kernels, for machines without a compiler.

    python recipes/build_wheels.py dist                            # Linux, x86-64
    python recipes/build_wheels.py dist --platform linux-aarch64 --platform windows-x86_64
    python recipes/build_wheels.py dist --without-models

The libraries are called through ctypes, so one wheel serves every Python version of its platform.
Needs pip and the platform's gcc and binutils (Debian: gcc, gcc-aarch64-linux-gnu,
gcc-mingw-w64-x86-64). Libraries for Linux need glibc 2.28 and nothing else, which is checked.
"""

import argparse
import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from elmokit.cli.error_messages import exit_on_user_error
from elmokit.kernels.build import FLAGS
from elmokit.kernels.interface import SOURCE_DIR
from elmokit.kernels.prebuilt import MANIFEST, VARIANTS, library_file, source_hash

LIBRARIES = ("inference", "training")
ROOT = Path(__file__).parents[1]
OLDEST_GLIBC = (2, 28)
FOLDER = "elmokit/kernels/prebuilt"
MODELS = ("elmokit/data/models/", "elmokit/data/taggers/")


@dataclass(frozen=True)
class Platform:
    """Where a wheel can be installed."""

    tag: str
    system: str
    machine: str
    compiler: tuple[str, ...]
    readelf: str = ""
    """Program that shows what a library needs; empty: not an ELF file."""
    first_glibc: str = ""
    """Version of the oldest symbols of this machine's C library."""


PLATFORMS = {
    "linux-x86_64": Platform(
        "manylinux_2_28_x86_64", "Linux", "x86_64", ("gcc",), "readelf", "GLIBC_2.2.5"
    ),
    "linux-aarch64": Platform(
        "manylinux_2_28_aarch64", "Linux", "aarch64",
        ("aarch64-linux-gnu-gcc",), "aarch64-linux-gnu-readelf", "GLIBC_2.17",
    ),
    # gcc aligns the stack for Windows to 16 bytes only, so no instruction may ask for more
    "windows-x86_64": Platform(
        "win_amd64", "Windows", "x86_64",
        ("x86_64-w64-mingw32-gcc", "-static", "-Wa,-muse-unaligned-vector-move"),
    ),
}  # fmt: skip
MOVED_SYMBOLS = ("pthread_create", "pthread_detach", "pthread_mutex_trylock", "pthread_once")
"""Got a new version when glibc 2.34 moved them; the old one still works everywhere."""


def main() -> None:
    """Build the wheels that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder for the wheels")
    parser.add_argument("--platform", action="append", choices=list(PLATFORMS))
    parser.add_argument(
        "--without-models", action="store_true", help="leave models and taggers out"
    )
    arguments = parser.parse_args()
    for path in build_wheels(
        arguments.out, arguments.platform or ["linux-x86_64"], models=not arguments.without_models
    ):
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")


def build_wheels(out: Path, platforms: list[str], *, models: bool = True) -> list[Path]:
    """Build a wheel for each platform."""
    out.mkdir(parents=True, exist_ok=True)
    targets = [PLATFORMS[name] for name in platforms]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, str(ROOT)]
        subprocess.run(command, check=True)
        (plain,) = Path(folder).glob("*.whl")
        return [
            add_kernels(plain, out, target, compile_kernels(target), models=models)
            for target in targets
        ]


def compile_kernels(target: Platform) -> dict[str, bytes]:
    """Return the files of the folder of prebuilt libraries, manifest included."""
    files: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in LIBRARIES:
            for variant in VARIANTS:
                if variant.machine == target.machine:
                    path = Path(folder) / library_file(name, variant, target.system)
                    compile_library(name, variant.flags, target, path)
                    files[path.name] = path.read_bytes()
    manifest = {
        "sources": {name: source_hash(name) for name in LIBRARIES},
        "libraries": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    return {**files, MANIFEST: json.dumps(manifest, indent=1).encode()}


def compile_library(name: str, flags: tuple[str, ...], target: Platform, path: Path) -> None:
    """Compile a library with the flags of `elmokit.kernels.build` and those of a processor."""
    unit = f'#include "{name}.c"\n'
    if target.first_glibc:
        unit = old_symbols(target.first_glibc) + unit
    command = [
        *target.compiler, *FLAGS, *flags, "-s", "-I", str(SOURCE_DIR), "-x", "c", "-", "-o",
        str(path), "-lm",
    ]  # fmt: skip
    subprocess.run(command, input=unit, text=True, check=True)
    if target.readelf:
        check_needs(path, target)


def old_symbols(version: str) -> str:
    """Return C that binds `MOVED_SYMBOLS` to their first version."""
    return "".join(f'__asm__(".symver {name}, {name}@{version}");\n' for name in MOVED_SYMBOLS)


def check_needs(path: Path, target: Platform) -> None:
    """Raise `RuntimeError` if a library needs more than an old C library."""
    shown = subprocess.run(
        [target.readelf, "-dVW", path], check=True, capture_output=True, text=True
    ).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+?)\]", shown))
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", shown)}
    others = {name for name in needed if not re.match(r"(libc|libm|ld-linux.*)\.so", name)}
    if others or max(versions) > OLDEST_GLIBC:
        raise RuntimeError(f"{path.name} needs {sorted(needed)}, glibc {max(versions)}")


def add_kernels(
    plain: Path, out: Path, target: Platform, files: dict[str, bytes], *, models: bool
) -> Path:
    """Write a wheel with the files of ``plain`` and the compiled libraries."""
    path = out / plain.name.replace("none-any", f"none-{target.tag}")
    record: list[tuple[str, str, int | str]] = []
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w") as wheel:
        (record_name,) = (name for name in source.namelist() if name.endswith("/RECORD"))

        def add(name: str, content: bytes) -> None:
            info = zipfile.ZipInfo(name)  # 1980: the same bytes for the same content
            info.external_attr = 0o644 << 16
            wheel.writestr(info, content, zipfile.ZIP_DEFLATED, 9)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            record.append((name, f"sha256={digest.decode()}", len(content)))

        for name in source.namelist():
            content = source.read(name)
            if name.endswith("/WHEEL"):
                add(name, _retagged(content, target))
            elif name != record_name and (models or not name.startswith(MODELS)):
                add(name, content)
        for name, content in sorted(files.items()):
            add(f"{FOLDER}/{name}", content)
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows([*record, (record_name, "", "")])
        wheel.writestr(record_name, table.getvalue(), zipfile.ZIP_DEFLATED)
    return path


def _retagged(metadata: bytes, target: Platform) -> bytes:
    text = metadata.decode().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
    return re.sub(r"^(Tag: \S+-none-)any$", rf"\g<1>{target.tag}", text, flags=re.M).encode()


if __name__ == "__main__":
    with exit_on_user_error():
        main()
