import json

import pytest

from elmokit.corpus.shards import ShardSet, write_shards
from elmokit.errors import FormatError

SENTENCES = [["The", "bank", "opened", "."], ["강", "은행"], ["Open", "the", "bank", "!"]]


@pytest.fixture
def written(tmp_path):
    return write_shards(SENTENCES, tmp_path / "shards", tokens_per_shard=5)


def test_an_interrupted_set_is_not_opened_and_is_replaced(tmp_path):
    def interrupted():
        for _ in range(4):
            yield ["a", "b"]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shards(interrupted(), tmp_path, tokens_per_shard=2)
    assert len(list(tmp_path.iterdir())) == 4
    with pytest.raises(FileNotFoundError, match=r" manifest\.json"):
        ShardSet.open(tmp_path)

    write_shards([["c"]], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "shard-00000.bin"]
    assert list(ShardSet.open(tmp_path).sentences()) == [["c"]]


@pytest.mark.parametrize("at", [0, 20, -1])
def test_a_flipped_bit_is_found_when_opened(written, at):
    path = written.shard_dir / "shard-00001.bin"
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    expected = written.entries[1].sha256
    with pytest.raises(FormatError, match=rf"shard-00001\.bin: .*sha256 {expected}"):
        ShardSet.open(written.shard_dir)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda manifest: manifest.update(version=9), "version 9"),
        (lambda manifest: manifest.pop("shards"), "shards"),
        (lambda manifest: manifest["shards"][0].update(num_words="6"), "num_words"),
        (lambda manifest: manifest["shards"][0].update(file="../x.bin"), "shard-NNNNN"),
        (lambda manifest: manifest["metadata"].update(tokenizer="x"), ""),
        (lambda manifest: manifest["metadata"].update(normalization="x"), "normalization"),
        (lambda manifest: manifest["metadata"].update(sources="x"), "sources"),
        (lambda manifest: manifest.update(shards=[]), "counts"),
    ],
)
def test_a_wrong_manifest_is_refused(written, change, message):
    path = written.shard_dir / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="ascii")
    with pytest.raises(FormatError, match=rf"manifest\.json: .*{message}"):
        ShardSet.open(written.shard_dir)
