"""Errors of libraries about a file become one kind of error; others stay."""

import pytest

from elmokit.corpus.readers import ReadReport, read_text_lines
from elmokit.embed.vector_sequence import open_vectors
from elmokit.errors import FormatError
from elmokit.files.json_files import read_json
from elmokit.text.word_vocab import WordVocab
from elmokit.vectors.vector_files import read_vectors
from elmokit.weights.arrays import read_arrays


def read_corpus(path):
    return list(read_text_lines([path], ReadReport()))


def read_weights(path):
    read_arrays(path, {"weight": (2, 2), "bias": (2,)}, sha256=None, advice="")


def read_settings(path):
    read_json(path, advice="")


@pytest.mark.parametrize(
    ("read", "name"), [
        (read_corpus, "a.txt"), (read_corpus, "a.txt.gz"), (read_corpus, "a.txt.zst"),
        (read_corpus, "a.jsonl"), (read_corpus, "a.parquet"), (read_vectors, "a.vec"),
        (read_vectors, "a.bin.gz"), (WordVocab.read, "vocab.txt"), (WordVocab.read, "vocab.txt.gz"),
        (open_vectors, "a.h5"), (open_vectors, "a.npz"), (open_vectors, "a.parquet"),
        (read_weights, "model.safetensors"), (read_settings, "config.json"),
    ],
)  # fmt: skip
def test_a_pointer_of_git_lfs_is_called_one_whatever_it_stands_for(read, name, tmp_path):
    path = tmp_path / name
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n")
    with pytest.raises(FormatError, match=rf"{name}: .*Git LFS.*git lfs pull"):
        read(path)
