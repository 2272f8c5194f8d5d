"""What Python reads out of the C source, and that the compiler lays structures out likewise."""

import ctypes
import subprocess

import pytest

from elmokit.kernels import build
from elmokit.kernels.build import SOURCE_DIR, read_interface

from ...builders.kernel_sources import write_library

needs_compiler = pytest.mark.skipif(build._compiler() is None, reason="no C compiler here")
LIBRARIES = sorted(path.stem for path in SOURCE_DIR.glob("*.c"))


@pytest.mark.parametrize("field", ["double x;", "int64_t sizes[3];", "unsigned char *x;"])
def test_a_call_with_a_field_that_python_cannot_mirror_is_refused(source_dir, field):
    write_library(source_dir, field)
    with pytest.raises(KeyError, match="own_call"):
        read_interface("own")


@needs_compiler
@pytest.mark.parametrize("name", LIBRARIES)
def test_the_compiler_lays_structures_out_as_python_does(name, tmp_path):
    read = read_interface(name)
    layout = dict(read.constants)
    for type_name, structure in read.structures.items():
        layout[f"sizeof({type_name})"] = ctypes.sizeof(structure)
        for field, _ in structure._fields_:
            layout[f"offsetof({type_name}, {field})"] = getattr(structure, field).offset
    code = f'#include <stddef.h>\n#include "{name}.c"\nconst int64_t layout[] = {{'
    source, library = tmp_path / "layout.c", tmp_path / "layout.so"
    source.write_text(code + ", ".join(layout) + "};\n")
    command = [*build._compiler(), *build.FLAGS, "-O0", "-I", SOURCE_DIR, source, "-o", library]
    subprocess.run([*command, "-lm"], check=True)
    compiled = (ctypes.c_int64 * len(layout)).in_dll(ctypes.CDLL(str(library)), "layout")
    assert dict(zip(layout, compiled, strict=True)) == layout
    assert len(layout) > 40
