import hashlib

from elmokit.files.hashing import file_sha256, text_sha256


def test_texts_and_files_of_the_same_bytes_have_the_same_hash(tmp_path):
    path = tmp_path / "a"
    path.write_bytes("한 e\n".encode())
    assert (
        file_sha256(path) == text_sha256("한 e\n") == hashlib.sha256(path.read_bytes()).hexdigest()
    )
    assert len(text_sha256("\udc80")) == 64
