import hashlib

import pytest

from elmokit.errors import FormatError
from elmokit.files.hashing import check_file, file_sha256, text_sha256


def test_texts_and_files_of_the_same_bytes_have_the_same_hash(tmp_path):
    path = tmp_path / "a"
    path.write_bytes("한 e\n".encode())
    assert (
        file_sha256(path) == text_sha256("한 e\n") == hashlib.sha256(path.read_bytes()).hexdigest()
    )
    assert len(text_sha256("\udc80")) == 64


def test_a_file_is_held_to_what_was_recorded(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    recorded = {"num_bytes": 3, "sha256": file_sha256(path), "advice": "Write it again."}
    check_file(path, **recorded)
    for content, what in ((b"abx", "sha256"), (b"abcd", "3 .* 4"), (None, "missing.* 3 ")):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(FormatError, match=rf"/a: .*{what}.*Write it again"):
            check_file(path, **recorded)
