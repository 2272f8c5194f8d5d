"""Arrays of archives: as written, and never larger than the file."""

import io
import zipfile

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.files.arrays import open_archive

ARRAYS = {
    "floats": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "text": np.array("배"),
    "empty": np.zeros((0, 4)),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_back_writable(tmp_path, save):
    save(tmp_path / "a.npz", **ARRAYS)
    with open_archive(tmp_path / "a.npz", advice="") as archive:
        for name, array in ARRAYS.items():
            assert name in archive
            assert archive[name].dtype == array.dtype
            assert archive[name].flags.writeable
            np.testing.assert_array_equal(archive[name], array)
        assert "none" not in archive
        assert list(archive) == list(ARRAYS)


def entry(path, content, *, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("x.npy", content)


def header(shape, dtype):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"shape": shape, "fortran_order": False, "descr": dtype}
    )
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        header((10**7, 10**7), "<f4"), header((-1,), "<f4"), header((2,), "|O") + b"12345678" * 2,
        b"", b"\x93NUMPY\x09\x00", b"\x93NUMPY\x01\x00\x05\x00{'a':",
    ],
)  # fmt: skip
def test_other_contents_are_refused_with_file_and_array(tmp_path, content):
    entry(tmp_path / "a.npz", content)
    with (
        open_archive(tmp_path / "a.npz", advice="Mend it.") as archive,
        pytest.raises(FormatError, match=r"a\.npz: .*`x`.* Mend it\."),
    ):
        _ = archive["x"]
