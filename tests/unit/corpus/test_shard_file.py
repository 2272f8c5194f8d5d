import pytest


def test_a_file_of_another_format_is_refused(tmp_path):
    from elmokit.corpus.shard_file import _decode_shard
    from elmokit.errors import FormatError

    with pytest.raises(FormatError, match=r"expected the bytes b'ELMOKSH1' first, found b'PK"):
        _decode_shard(b"PK\x03\x04" + bytes(60), path=tmp_path / "a.bin")
