"""Files by address: read as local ones are, written whole or not at all."""

import gzip
import json

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from elmokit.errors import InputError
from elmokit.files.remote import as_address, local_output
from elmokit.files.sources import describe_files, find_files, read_pieces

from ...builders.command_line import elmokit
from ...builders.embedding_models import toy_model

LINES = "I sat by the bank .\n\n배 를 타고 갔다\n"


class Buckets(MemoryFileSystem):
    """A storage of another kind."""

    protocol = ("oss",)
    store, pseudo_dirs = {}, [""]

    @classmethod
    def _strip_protocol(cls, path):
        return path.removeprefix("oss://").strip("/")


@pytest.fixture(autouse=True)
def storage(tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.files.remote.cache_dir", lambda name: tmp_path / "cache" / name)
    fsspec.register_implementation("oss", Buckets, clobber=True)
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    Buckets.store.clear()


def put(address, content):
    with fsspec.open(address, "wb") as file:
        file.write(content)


def get(address):
    with fsspec.open(address, "rb") as file:
        return file.read()


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


@pytest.fixture
def command(tmp_path):
    """A command that embeds remote text into a remote file."""
    toy_model().save(tmp_path / "model")
    put("memory://t.txt", LINES.encode())
    return ["embed", "memory://t.txt", "-o", "oss://mine/o.h5", "-m", tmp_path / "model"]


def test_embedding_goes_there_and_back(tmp_path, command):
    (tmp_path / "t.txt").write_text(LINES, encoding="utf-8")
    elmokit("embed", tmp_path / "t.txt", "-o", tmp_path / "o.h5", "-m", tmp_path / "model")
    assert json.loads(elmokit(*command, "--json").stdout)["output"] == "oss://mine/o.h5"
    assert get("oss://mine/o.h5") == (tmp_path / "o.h5").read_bytes()
    assert "--overwrite" in elmokit(*command, "--resume", expect=2).stderr
    elmokit(*command, "--overwrite")
    assert not list((tmp_path / "cache").rglob("o.*"))


def test_a_failed_transfer_of_vectors_is_repeated(tmp_path, command, monkeypatch):
    def fail(*_, **__):
        raise OSError("the line is dead")

    with monkeypatch.context() as broken_line:
        broken_line.setattr(Buckets, "put_file", fail)
        failed = elmokit(*command, expect=1).stderr
    assert "the line is dead" in failed
    assert "The output is complete in" in failed
    assert "3 finished before" in elmokit(*command, "--resume").stdout
    assert get("oss://mine/o.h5")
    assert not list((tmp_path / "cache").rglob("*.h5"))


def refused_before_work(kind, match, target, **options):
    with pytest.raises(kind, match=match), local_output(target, **options):
        raise AssertionError("nothing may be done")


def test_what_cannot_be_written_is_refused_before_any_work():
    put("memory://t.txt", b"old")
    refused_before_work(InputError, r"http://h/v\.txt: nothing is written", "http://h/v.txt")
    refused_before_work(FileExistsError, r"memory://t\.txt .*--overwrite", "memory://t.txt")
    options = {"inputs": ["memory://t.txt"], "overwrite": True}
    refused_before_work(InputError, "is read by this command", "memory://t.txt", **options)
