"""Build wheels with compiled kernels, for machines without a compiler.

    python recipes/build_wheels.py dist                            # Linux, x86-64
    python recipes/build_wheels.py dist --platform all
    python recipes/build_wheels.py dist --platform macos-aarch64 --platform windows-x86_64

The libraries are called through ctypes, so one wheel serves every Python version of its platform.
Needs pip and, as the only compiler, zig (``pip install ziglang``), which brings the C libraries of
all platforms. Built twice, a wheel has the same bytes.
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
from pathlib import Path
from typing import NamedTuple

from elmokit.cli.output import exit_on_user_error
from elmokit.errors import InputError
from elmokit.kernels.build import (
    ASKED,
    FLAGS,
    SOURCE_DIR,
    VARIANTS,
    library_file,
)
from elmokit.version import __version__

LIBRARIES = ("inference", "training")
ROOT = Path(__file__).parents[1]
FOLDER = "elmokit/kernels/prebuilt"
LINKED = {
    "compiler-rt": "Apache-2.0 WITH LLVM-exception",
    "mingw-w64": "ZPL-2.1 AND MIT",  # Windows only: its C runtime and threads
}
"""What zig links into the libraries, and its licence."""


class Platform(NamedTuple):
    """Where a wheel can be installed."""

    tag: str
    """Of the wheel's name; its end is the machine."""
    target: str
    """As zig names it, with the oldest C library or system."""
    system: str = "Linux"
    """As `platform.system` names it."""


PLATFORMS = {
    "linux-x86_64": Platform("manylinux_2_28_x86_64", "x86_64-linux-gnu.2.28"),
    "linux-aarch64": Platform("manylinux_2_28_aarch64", "aarch64-linux-gnu.2.28"),
    "musl-x86_64": Platform("musllinux_1_2_x86_64", "x86_64-linux-musl"),
    "musl-aarch64": Platform("musllinux_1_2_aarch64", "aarch64-linux-musl"),
    "macos-x86_64": Platform("macosx_11_0_x86_64", "x86_64-macos.11.0", "Darwin"),
    "macos-aarch64": Platform("macosx_11_0_arm64", "aarch64-macos.11.0", "Darwin"),
    "windows-x86_64": Platform("win_amd64", "x86_64-windows-gnu", "Windows"),
    "windows-aarch64": Platform("win_arm64", "aarch64-windows-gnu", "Windows"),
}


def zig(*arguments: str, folder: str | None = None) -> str:
    """Run zig in a folder and return what it prints."""
    command = [sys.executable, "-m", "ziglang", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode and "No module named ziglang" in done.stderr:
        raise InputError("zig is not installed: pip install ziglang")
    if done.returncode:
        raise RuntimeError(f"zig {' '.join(arguments)}:\n{done.stderr}")
    return done.stdout


def compile_kernels(target: Platform) -> dict[str, bytes]:
    """Return the files of the folder of prebuilt libraries."""
    files: dict[str, bytes] = {}
    # those that are told apart there
    asked = frozenset[str]().union(*ASKED.get(target.system, {}).values())
    variants = [
        variant for variant in VARIANTS
        if variant.machine == target.target.partition("-")[0]
        and (target.system == "Linux" or variant.instructions <= asked)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for name in LIBRARIES:
            for variant in variants:
                path = Path(folder) / library_file(name, variant, target.system)
                # Linked apart: zig builds the platform's C library once, not for each processor.
                # Names without folders, since libraries for macOS contain them.
                flags = ("cc", "-target", target.target, *FLAGS)
                source = str(SOURCE_DIR / f"{name}.c")
                compiled = (f"-mcpu={variant.processor}", "-c", source, "-o", "library.o")
                zig(*flags, *compiled, folder=folder)
                zig(*flags, "-s", "library.o", "-o", path.name, "-lm", folder=folder)
                files[path.name] = path.read_bytes()
    return files


def bill_of_materials(target: Platform, files: dict[str, bytes]) -> bytes:
    """Return the CycloneDX document of a wheel's compiled parts (PEP 770)."""
    made_by = zig("version").strip()
    libraries = [
        {
            "type": "file", "name": f"{FOLDER}/{name}",
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
        }
        for name, content in sorted(files.items())
    ]  # fmt: skip
    linked = [
        {
            "type": "library", "name": name, "version": f"of zig {made_by}",
            "licenses": [{"expression": licence}],
        }
        for name, licence in LINKED.items()
        if target.system == "Windows" or name != "mingw-w64"
    ]  # fmt: skip
    package = {
        "type": "library", "name": "elmokit", "version": __version__,
        "purl": f"pkg:pypi/elmokit@{__version__}", "licenses": [{"license": {"id": "Apache-2.0"}}],
    }  # fmt: skip
    tool = {"type": "application", "name": "zig", "version": made_by}
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": package, "tools": {"components": [tool]}},
        "components": [*libraries, *linked],
    }  # fmt: skip
    return json.dumps(document, indent=1).encode()


def add_kernels(plain: Path, out: Path, target: Platform, files: dict[str, bytes]) -> Path:
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
                text = content.decode().replace("Is-Purelib: true", "Is-Purelib: false")
                tag = re.sub(r"^(Tag: \S+-none-)any$", rf"\g<1>{target.tag}", text, flags=re.M)
                add(name, tag.encode())
            elif name != record_name:
                add(name, content)
        for name, content in sorted(files.items()):
            add(f"{FOLDER}/{name}", content)
        sboms = record_name.replace("RECORD", "sboms/elmokit.cdx.json")
        add(sboms, bill_of_materials(target, files))
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows([*record, (record_name, "", "")])
        add(record_name, table.getvalue().encode())
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder for the wheels")
    parser.add_argument("--platform", action="append", choices=[*PLATFORMS, "all"])
    options = parser.parse_args()
    names = options.platform or ["linux-x86_64"]
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, str(ROOT)]
        subprocess.run(command, check=True)
        (plain,) = Path(folder).glob("*.whl")
        for name in PLATFORMS if "all" in names else names:
            target = PLATFORMS[name]
            path = add_kernels(plain, options.out, target, compile_kernels(target))
            print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    with exit_on_user_error():
        main()
