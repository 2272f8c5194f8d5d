"""Build wheels with compiled kernels, for machines without a compiler.

    python recipes/build_wheels.py dist                            # Linux, x86-64
    python recipes/build_wheels.py dist --platform all
    python recipes/build_wheels.py dist --platform macos-aarch64 --platform windows-x86_64

The libraries are called through ctypes, so one wheel serves every Python version of its platform.
Needs ``pip install hatchling ziglang``: hatchling packs elmokit, zig is the compiler and brings the
C libraries of all platforms. Built twice, a wheel has the same bytes.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from hatchling.builders.wheel import WheelBuilder  # pyright: ignore[reportMissingImports]

from elmokit.kernels.build import ASKED, FLAGS, SOURCE_DIR, VARIANTS, Variant, library_file

LIBRARIES = ("inference", "training")
ROOT = Path(__file__).parents[1]
FOLDER = "elmokit/kernels/prebuilt"


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


def variants_of(target: Platform) -> list[Variant]:
    """Return the processors of a platform that its system can tell apart."""
    asked = frozenset[str]().union(*ASKED.get(target.system, {}).values())
    return [
        variant for variant in VARIANTS
        if variant.machine == target.target.partition("-")[0]
        and (target.system == "Linux" or variant.instructions <= asked)
    ]  # fmt: skip


def compile_kernels(target: Platform, folder: Path) -> None:
    """Write the libraries of a platform into an empty folder."""

    def compile_with_zig(*arguments: str | Path) -> None:
        command = [sys.executable, "-m", "ziglang", "cc", "-target", target.target, *FLAGS]
        subprocess.run([*command, *arguments], check=True, cwd=folder)

    for name in LIBRARIES:
        for variant in variants_of(target):
            library = library_file(name, variant, target.system)
            # Linked apart: zig builds the platform's C library once, not for each processor.
            # Names without folders, since libraries for macOS contain them.
            source = SOURCE_DIR / f"{name}.c"
            compile_with_zig(f"-mcpu={variant.processor}", "-c", source, "-o", "library.o")
            compile_with_zig("-s", "library.o", "-o", library, "-lm")
    (folder / "library.o").unlink()


def build_wheel(out: Path, target: Platform, libraries: Path) -> Path:
    """Write the wheel of a platform with what is in the folder of its libraries."""
    builder = WheelBuilder(str(ROOT))
    settings = builder.get_default_build_data() | {
        "tag": f"py3-none-{target.tag}",
        "pure_python": False,
        "artifacts": [],
        "force_include": {str(path): f"{FOLDER}/{path.name}" for path in libraries.iterdir()},
    }
    with builder.config.set_build_data(settings):
        return Path(builder.build_standard(str(out), **settings))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder for the wheels")
    parser.add_argument("--platform", action="append", choices=[*PLATFORMS, "all"])
    options = parser.parse_args()
    names = options.platform or ["linux-x86_64"]
    options.out.mkdir(parents=True, exist_ok=True)
    for name in PLATFORMS if "all" in names else names:
        with tempfile.TemporaryDirectory() as folder:
            compile_kernels(PLATFORMS[name], Path(folder))
            path = build_wheel(options.out, PLATFORMS[name], Path(folder))
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
