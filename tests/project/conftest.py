"""What the tests of documents and examples share."""

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
    from elmokit import BiLMConfig, CharVocabConfig, PretrainedBiLM, WordVocab, write_bilm_tf
    from elmokit.bilm.char_cnn import CharCNNConfig
    from elmokit.bilm.lstmp import LSTMConfig
    from elmokit.bilm.softmax import SoftmaxConfig
    from elmokit.embed.embedder import Embedder

    from ..builders.embedding_models import embed_files

    folder = tmp_path_factory.mktemp("documents")
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    vocab = WordVocab(["<S>", "</S>", "<UNK>", *words])
    config = BiLMConfig(
        char_vocab=CharVocabConfig(),
        char_cnn=CharCNNConfig(embedding_dim=4, filters=((1, 8), (2, 8)), num_highway=1),
        lstm=LSTMConfig(num_layers=2, cell_dim=16, projection_dim=8),
    )
    model = PretrainedBiLM(
        config, word_vocab=vocab, softmax_config=SoftmaxConfig(kind="full"), warm_text=SENTENCES[:2]
    )
    model.save(folder / "model")
    write_bilm_tf(model, folder / "options.json", folder / "weights.hdf5")
    vocab.write(folder / "vocab.txt")
    for name in ("corpus.txt", "text.txt", "heldout.txt", "domain.txt"):
        (folder / name).write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    embed_files(Embedder(model), folder / "text.txt", folder / "vectors.h5")
    return folder
