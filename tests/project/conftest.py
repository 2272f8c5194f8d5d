"""What the tests of documents and examples share."""

import importlib

import pytest

SENTENCES = [
    "I sat by the bank of the river .",
    "The bank lent me money .",
    "She gave him a present .",
    "배 를 깎아 먹었다 .",
    "배 를 타고 섬 에 갔다 .",
]


@pytest.fixture(scope="session")
def workplace(tmp_path_factory):
    """A folder with everything that the documents' examples name."""
    from elmokit import WordVocab, write_bilm_tf
    from elmokit.embed.embedder import Embedder

    from ..builders.embedding_models import embed_files
    from ..builders.training_models import toy_model

    folder = tmp_path_factory.mktemp("documents")
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    vocab = WordVocab(["<S>", "</S>", "<UNK>", *words])
    model = toy_model(vocab=vocab, max_characters=50, warm_text=SENTENCES[:2])
    model.save(folder / "model")
    write_bilm_tf(model, folder / "options.json", folder / "weights.hdf5")
    vocab.write(folder / "vocab.txt")
    for name in ("corpus.txt", "text.txt", "heldout.txt", "domain.txt"):
        (folder / name).write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    embed_files(Embedder(model), folder / "text.txt", folder / "vectors.h5")
    return folder


@pytest.fixture
def program(repository_dir, monkeypatch):
    """Return a function that imports a program of `recipes` or `benchmarks`."""

    def program(name, *, folder="recipes"):
        monkeypatch.syspath_prepend(str(repository_dir / folder))
        return importlib.import_module(name)

    return program
