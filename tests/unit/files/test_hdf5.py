"""HDF5 files lead nowhere else, and say no more than they hold."""

import json
import subprocess
import sys

import h5py
import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.files import hdf5
from elmokit.files.hdf5 import MAX_GROUP_DEPTH, open_hdf5


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["elmokit"] = json.dumps({"a": "배"})
        file["group/inner"] = np.arange(6, dtype=np.float32).reshape(2, 3)
        file.create_dataset("small", data=np.zeros((300, 300)), compression="gzip", shuffle=True)
    (tmp_path / "secret.bin").write_bytes(b"secret..")
    return tmp_path / "a.h5"


def change(path, write):
    with h5py.File(path, "a") as file:
        write(file)


def test_what_is_there_is_found_by_name(path):
    with open_hdf5(path) as file:
        assert file.shapes() == {"group/inner": (2, 3), "small": (300, 300)}
        assert file.read(file.dataset("group/inner")).tolist() == [[0, 1, 2], [3, 4, 5]]
        assert file.read(file.dataset("small")).shape == (300, 300)
        assert json.loads(file.text_attribute("elmokit")) == {"a": "배"}
        assert "group" in file
        missing = ("group", "none", "small/x", "group/inner/x")
        assert [file.dataset(name) for name in missing] == [None] * 4
        assert file.text_attribute("none") is None


ELSEWHERE = {
    "external data": lambda file: file.create_dataset(
        "x", (1,), dtype="f8", external=[("secret.bin", 0, 8)]
    ),
    "virtual": lambda file: file.create_virtual_dataset("x", _virtual_layout()),
    "external link": lambda file: file.__setitem__("x", h5py.ExternalLink("b.h5", "/y")),
    "soft link": lambda file: file.__setitem__("x", h5py.SoftLink("/small")),
    "soft group": lambda file: file.__setitem__("y", h5py.SoftLink("/group")),
}


def _virtual_layout():
    layout = h5py.VirtualLayout((1,), "f8")
    layout[0] = h5py.VirtualSource("b.h5", "y", (1,))[0]
    return layout


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_nothing_leads_into_another_file_or_place(path, kind):
    change(path, ELSEWHERE[kind])
    name = "y/inner" if kind == "soft group" else "x"
    with open_hdf5(path) as file:
        with pytest.raises(FormatError, match=rf"a\.h5: .*`{name[0]}`"):
            file.dataset(name)
        if "data" not in kind and kind != "virtual":
            with pytest.raises(FormatError, match=rf"a\.h5: .*`{name[0]}`.*link"):
                file.shapes()


def test_sizes_that_the_file_cannot_hold(path):
    change(path, lambda file: file.create_dataset("x", (10**6, 10**6), "f4"))
    chunked = {"dtype": "f4", "chunks": (1000, 1000), "compression": "gzip"}
    change(path, lambda file: file.create_dataset("y", (10**6, 10**6), **chunked))
    with open_hdf5(path) as file:
        for name in "xy":
            with pytest.raises(FormatError, match=rf"`{name}`.*4,000,000,000,000 bytes"):
                file.dataset(name)


def test_lists_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5, "MAX_OBJECTS", 100)
    with h5py.File(tmp_path / "deep.h5", "w") as file:
        file.create_group("g/" * (MAX_GROUP_DEPTH + 2))
    with h5py.File(tmp_path / "wide.h5", "w") as file:
        for number in range(101):
            file.create_group(str(number))
    with h5py.File(tmp_path / "met.h5", "w") as file:
        group = file
        for _ in range(MAX_GROUP_DEPTH - 1):  # 2 ** 15 ways, in 30 links
            group["b"] = group.create_group("a")
            group = group["a"]
    for name in ("deep", "wide", "met"):
        with open_hdf5(tmp_path / f"{name}.h5") as file, pytest.raises(FormatError, match=name):
            file.shapes()


def test_a_dataset_of_one_text(path):
    change(path, lambda file: file.__setitem__("x", "배 " * 1000))
    with open_hdf5(path) as file:
        assert file.text("x") == "배 " * 1000
        assert file.text("y") is None
        with pytest.raises(FormatError, match=r"`small`.*one text"):
            file.text("small")
        with pytest.raises(FormatError, match=r"`x`.*numbers"):
            file.read(file.dataset("x"))


def test_attributes_of_datasets_are_texts_of_fixed_length(path):
    def write(file):
        attributes = file["small"].attrs
        attributes.create("fixed", np.array("배".encode(), h5py.string_dtype("utf-8", 3)))
        attributes["variable"], attributes["number"] = "a", 1
        attributes["several"] = np.array([b"a", b"b"])

    change(path, write)
    with open_hdf5(path) as file:
        small = file.dataset("small")
        assert file.bytes_attribute(small, "fixed") == "배".encode()
        for name in ("variable", "number", "several", "none"):
            assert file.bytes_attribute(small, name) is None
    change(path, lambda file: file.attrs.__setitem__("elmokit", np.arange(3)))
    with open_hdf5(path) as file, pytest.raises(FormatError, match=r"`elmokit`.*one text"):
        file.text_attribute("elmokit")


@pytest.mark.parametrize("content", [b"", b"no HDF5", None])
def test_what_is_no_hdf5_file_is_named(path, content):
    path.write_bytes(path.read_bytes()[:600] if content is None else content)
    with (
        pytest.raises(FormatError, match=r"a\.h5: .*HDF5.*It should be X\."),
        open_hdf5(path, expected="It should be X."),
    ):
        pass
    with pytest.raises(FileNotFoundError, match=r"none\.h5"), open_hdf5(path.with_name("none.h5")):
        pass


def test_a_file_that_another_process_writes_is_not_called_damaged(path):
    """HDF5's own locks are not asked for: not all file systems have them."""
    code = "import h5py, sys; f = h5py.File(sys.argv[1], 'r+'); print(1, flush=True); input()"
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"1\n"
        with open_hdf5(path) as file:
            assert file.names()
        writer.communicate(b"\n")
