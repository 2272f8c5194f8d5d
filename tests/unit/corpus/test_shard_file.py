import pytest

from elmokit.corpus.shard_file import _decode_shard, merge_shards
from elmokit.corpus.shards import write_shards
from elmokit.errors import FormatError


def test_a_file_of_another_format_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"b'ELMOKSH1'.*b'PK"):
        _decode_shard(b"PK\x03\x04" + bytes(60), path=tmp_path / "a.bin")


def test_merged_shards_hold_the_sentences_of_all(tmp_path):
    sentences = [["a", "b"], ["a"], ["c", "a", "한국"], ["b"], ["c", "c"]]
    shards = write_shards(sentences, tmp_path, tokens_per_shard=3)
    assert len(shards) == 3
    merged = merge_shards([shards.load(index) for index in range(3)])
    assert list(merged.sentences()) == sentences
    assert merged.words == ["a", "b", "c", "한국"]
    assert merged.num_words == 9
