"""Small models for the tests of `elmokit.embed`."""

from types import SimpleNamespace

import h5py
import numpy as np
import torch

from elmokit.bilm.bilm import BiLMState
from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.embed import job
from elmokit.embed.numbered_lines import LocalLineEmbedder
from elmokit.embed.options import EmbedOptions
from elmokit.inference.contexts import find_distinct_tokens
from elmokit.inference.device import build_engine
from elmokit.inference.layers_and_states import LSTMState
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights.model_dir import PretrainedBiLM

RAW = {"normalization": "none", "truncation": "byte"}
WORDS = ["I", "sat", "by", "the", "bank", "of", "a", "river", "배", "를", "타고", "갔다", "."]


def toy_model(
    *, num_layers=2, cell_dim=24, projection_dim=8, words=False, vocab=False, raw=False, **settings
) -> PretrainedBiLM:
    """A model with random weights of realistic scale.

    It reads word ids with ``words``, has a vocabulary with ``vocab`` or ``words``, and takes words
    as the original does with ``raw``.
    """
    cnn = CharCNNConfig(embedding_dim=4, filters=((1, 4), (2, 8), (3, 8)), num_highway=1)
    config = BiLMConfig(
        char_vocab=CharVocabConfig(max_characters=16, **(RAW if raw else {})),
        char_cnn=None if words else cnn,
        num_words=len(WORDS) + 3 if words else None,
        lstm=LSTMConfig(num_layers=num_layers, cell_dim=cell_dim, projection_dim=projection_dim),
    )
    vocab = WordVocab(["<S>", "</S>", "<UNK>", *WORDS]) if words or vocab else None
    model = PretrainedBiLM(config, word_vocab=vocab, **settings)
    model.reset_parameters(torch.Generator().manual_seed(3))
    with torch.no_grad():  # states that reach the clips
        for layer in (*model.forward_layers, *model.backward_layers):
            layer.recurrent_weight *= 2
            if layer.projection_weight is not None:
                layer.projection_weight *= 2
    return model.eval()


def random_sentences(count: int, *, seed: int = 0, longest: int = 12) -> list[list[str]]:
    """Sentences of 0 to ``longest`` words."""
    random = np.random.default_rng(seed)
    return [
        random.choice(WORDS, size=random.integers(0, longest + 1)).tolist() for _ in range(count)
    ]


def plain_layers(model, sentences, *, state=None) -> tuple[list[np.ndarray], BiLMState]:
    """The answer of the plain network: (L, W, 2D) for each sentence, and the state."""
    with torch.inference_mode():
        out = model(model.encode(sentences), state=state)
    layers = [out.layers[:, i, 1 : len(s) + 1].numpy() for i, s in enumerate(sentences)]
    return layers, out.state


def engine_of(model: PretrainedBiLM, precision="fp32"):
    """The engine of a model on the CPU."""
    return build_engine(model.config, model.arrays(), precision=precision, device="cpu")


def run_engine(model, sentences, *, precision="fp32", state=None, **options):
    """The answer of the engine, with the state of the modules."""
    tokens = find_distinct_tokens(sentences)
    engine = engine_of(model, precision)
    vectors = engine.encode_tokens(model.ids_of_words(tokens.words))
    before = None if state is None else LSTMState.of(state)
    out = engine.run(vectors, tokens.sentences, state=before, **options)
    after = BiLMState(torch.from_numpy(out.state.hidden), torch.from_numpy(out.state.cell))
    return SimpleNamespace(vectors=out.vectors, state=after)


def read_hdf5(path) -> dict[int, np.ndarray]:
    """The vectors in an embedding file."""
    with h5py.File(path) as file:
        return {int(key): file[key][...] for key in file}


def largest_difference(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """Over all values of all sentences, which must have the same shapes."""
    assert [x.shape for x in a] == [x.shape for x in b]
    return max((float(np.abs(x - y).max()) for x, y in zip(a, b, strict=True) if x.size), default=0)


def embed_files(embedder, texts, output, *, on_progress=None, **options) -> job.EmbedReport:
    """Embed files in this process, with the options by name."""
    options = EmbedOptions(**options)
    lines = LocalLineEmbedder(embedder, options)
    return job.embed_lines(lines, texts, output, options, on_progress=on_progress)
