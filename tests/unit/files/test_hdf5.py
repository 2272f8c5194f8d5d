"""HDF5 files lead nowhere else, and say no more than they hold."""

import json
import struct

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


@pytest.mark.parametrize("options", [{}, {"libver": "latest"}, {"userblock_size": 512}])
def test_texts_are_read_however_they_are_stored(tmp_path, options):
    text, ascii_text = "배 " * 1000, "x" * 3000
    with h5py.File(tmp_path / "a.h5", "w", **options) as file:
        file.attrs["variable"], file.attrs["fixed"] = ascii_text, np.bytes_(ascii_text)
        for name, shape in (("one", (1,)), ("alone", ())):
            file.create_dataset(name, shape, dtype=h5py.string_dtype())[...] = text
    with open_hdf5(tmp_path / "a.h5") as file:
        assert file.text_attribute("variable") == file.text_attribute("fixed") == ascii_text
        assert file.text("one") == file.text("alone") == text
        assert file.text("none") is None


def test_a_file_that_is_open_with_locks_is_read(path):
    with h5py.File(path, "r"), open_hdf5(path) as file:
        assert "group" in file


def test_nothing_leads_into_another_file_or_place(path):
    layout = h5py.VirtualLayout((1,), "f8")
    layout[0] = h5py.VirtualSource("b.h5", "y", (1,))[0]
    with h5py.File(path, "a") as file:
        file.create_dataset("external", (1,), dtype="f8", external=[("secret.bin", 0, 8)])
        file.create_virtual_dataset("virtual", layout)
    with open_hdf5(path) as file:
        for name in ("external", "virtual"):
            with pytest.raises(FormatError, match=rf"a\.h5: .*`{name}`"):
                file.dataset(name)


@pytest.mark.parametrize(
    "link",
    [h5py.ExternalLink("b.h5", "/y"), h5py.SoftLink("/small"), h5py.SoftLink("/group")],
    ids=["other file", "dataset", "group"],
)
def test_links_are_not_followed(path, link):
    with h5py.File(path, "a") as file:
        file["x"] = link
    with open_hdf5(path) as file:
        for read in (lambda: file.dataset("x"), lambda: file.dataset("x/inner"), file.shapes):
            with pytest.raises(FormatError, match=r"a\.h5: .*`x`.*link"):
                read()


def test_sizes_that_the_file_cannot_hold(path):
    chunked = {"chunks": (1000, 1000), "compression": "gzip"}
    with h5py.File(path, "a") as file:
        file.create_dataset("x", (10**6, 10**6), "f4")
        file.create_dataset("y", (10**6, 10**6), "f4", **chunked)
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


def test_a_dataset_of_text_that_states_gigabytes_is_refused(path):
    with h5py.File(path, "a") as file:
        file["x"] = "some text"
        at = file["x"].id.get_offset()
    data = bytearray(path.read_bytes())
    assert data[at : at + 4] == len("some text").to_bytes(4, "little")
    data[at + 3] = 0x7F
    path.write_bytes(data)
    with open_hdf5(path) as file:
        with pytest.raises(FormatError, match=r"`x`.* 2,130,\d+"):
            file.text("x")
        with pytest.raises(FormatError, match=r"`x`.*numbers"):
            file.read(file.dataset("x"))


@pytest.mark.parametrize("imitated", [False, True])
def test_an_imitation_does_not_hide_the_length_of_a_text(tmp_path, imitated):
    path, text = tmp_path / "a.h5", "x" * 99
    fake = struct.pack("<BBHHH8s16xI", 1, 0, 8, 8, 8, b"elmokit\0", 3)
    with h5py.File(path, "w") as file:
        if imitated:
            file.attrs["first"] = np.void(fake)
        file.attrs["elmokit"] = text
    data = bytearray(path.read_bytes())
    assert data.count(b"elmokit\0") == 1 + imitated
    data[data.index(len(text).to_bytes(4, "little"), data.rindex(b"elmokit\0")) + 3] = 0x7F
    path.write_bytes(data)
    with open_hdf5(path) as file, pytest.raises(FormatError, match=r"`elmokit`.* 2,130,\d+"):
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


@pytest.mark.parametrize("place", ["attribute", "dataset"])
def test_a_heap_of_texts_without_end_is_refused(tmp_path, place):
    """The HDF5 library (1.14) reads such a heap for ever; a single byte makes one."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        if place == "attribute":
            file.attrs["elmokit"] = "x" * 99
        else:
            file.create_dataset("elmokit", data="x" * 99)
    data = bytearray(path.read_bytes())
    heap = data.index(b"GCOL")
    free = heap + 16 + 16 + 104  # behind the head of the heap and the text with its own
    assert struct.unpack_from("<H6xQ", data, free) == (0, 4096 - 136)
    struct.pack_into("<Q", data, free + 8, 0)
    path.write_bytes(data)
    with open_hdf5(path) as file, pytest.raises(FormatError, match=r"`elmokit`.*no end"):
        (file.text_attribute if place == "attribute" else file.text)("elmokit")
