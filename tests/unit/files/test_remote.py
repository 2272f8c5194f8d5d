"""Files by address are read as local ones are."""

import gzip

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from elmokit.errors import InputError
from elmokit.files.remote import as_address
from elmokit.files.sources import describe_files, find_files, read_pieces

from ...builders.command_line import elmokit
from ...builders.embedding_models import toy_model

LINES = "I sat by the bank .\n\n배 를 타고 갔다\n"


@pytest.fixture(autouse=True)
def storage():
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


def put(address, content):
    with fsspec.open(address, "wb") as file:
        file.write(content)


def test_what_is_an_address(tmp_path, monkeypatch):
    assert as_address("s3://bucket/a b.txt") == "s3://bucket/a b.txt"
    assert as_address(tmp_path.__class__("memory://a/b")) == "memory://a/b"
    for local in ("a/b.txt", "C:/texts", "C:\\texts", "-", "s3:"):
        assert as_address(local) is None
    with pytest.raises(InputError, match="path without file://"):
        as_address("file:///etc/hosts")
    with pytest.raises(InputError, match=r"s4://bucket/a: .*hf, .*s3.* s3://BUCKET"):
        as_address("s4://bucket/a")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "b").mkdir(parents=True)
    assert as_address("s3:/b") is None  # a folder of that name


OTHER_STORAGES = [
    "reference://{path}", "reference:/{path}", "dir://x", "cached://x", "filecache://x",
    "simplecache://x", "blockcache://x", "generic://x", "jupyter://h/x", "zip://x", "tar://x",
    "libarchive://x", "git://x", "github://o:r@main/x", "ftp://h/x", "sftp://h/x", "smb://h/x",
    "data://text/plain,x", "dbfs://x", "asynclocal://{path}", "root://x",
    "s3://a::file://{path}", "memory://a::file://{path}", "https://h/a.zip::{path}",
]  # fmt: skip


def test_other_storages_are_refused(tmp_path):
    """Drivers of fsspec read what a text or an address names, such as `reference` any file."""
    for address in OTHER_STORAGES:
        with pytest.raises(InputError, match="s3://BUCKET/KEY"):
            as_address(address.format(path=tmp_path))


def test_a_listed_name_cannot_lead_to_a_local_file(tmp_path):
    (tmp_path / "secret").write_text("geheim\n")
    MemoryFileSystem.store[f"/c/a::file://{tmp_path}/secret"] = MemoryFileSystem.open(
        MemoryFileSystem(), "/c/b.txt", "wb"
    )
    with pytest.raises(InputError, match="::"):
        [list(read_pieces(file)) for file in find_files("memory://c")]


def test_files_folders_and_patterns_are_found():
    for name in ("b.txt", "a.txt.gz", ".hidden", "deep/c.txt"):
        put(f"memory://corpus/{name}", gzip.compress(b"text") if "gz" in name else b"text")
    names = [f"memory:///corpus/{name}" for name in ("a.txt.gz", "b.txt", "deep/c.txt")]
    assert [str(file) for file in find_files("memory://corpus")] == names
    assert [str(file) for file in find_files("memory://corpus/*.txt")] == names[1:2]
    assert [b"".join(read_pieces(file)) for file in find_files("memory://corpus")] == [b"text"] * 3
    with pytest.raises(FileNotFoundError, match="memory://corpus/none"):
        find_files("memory://corpus/none.txt")
    (described,) = describe_files(find_files("memory://corpus/b.txt"))
    assert described["num_bytes"] == 4
    assert described["sha256"].startswith("982d9e3e")


def test_an_output_is_on_this_machine(tmp_path):
    toy_model().save(tmp_path / "model")
    put("memory://t.txt", LINES.encode())
    (tmp_path / "t.txt").write_text(LINES, encoding="utf-8")
    model = ("-m", tmp_path / "model")
    for text, name in ((tmp_path / "t.txt", "a.npz"), ("memory://t.txt", "b.npz")):
        elmokit("embed", text, "-o", tmp_path / name, *model)
    with np.load(tmp_path / "a.npz") as ours, np.load(tmp_path / "b.npz") as theirs:
        np.testing.assert_array_equal(ours["0"], theirs["0"])
    refused = elmokit("embed", "memory://t.txt", "-o", "memory://o.npz", *model, expect=2)
    assert "memory://o.npz is an address" in refused.stderr
