"""Peer: AllenNLP's ELMo, as its `ElmoEmbedder` ran it, or with its cache of a known vocabulary.

AllenNLP itself is unmodified. What its ELMo imports and never uses (spaCy, transformers, ...) is
not installed: empty classes stand in for its modules.
"""

import importlib.abc
import importlib.machinery
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from protocol import answer, read_request, time_embedding

STAND_INS = {
    "_jsonnet", "base58", "cached_path", "dill", "fairscale", "huggingface_hub", "lmdb",
    "more_itertools", "spacy", "torchvision", "tqdm", "transformers",
}  # fmt: skip


class _Name(type):
    """A class whose every attribute is such a class again; good as a module and for annotations."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Name(name, (), {})

    def __getitem__(cls, item: object) -> type:
        return cls


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives stand-ins where nothing is installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> Any:
        if fullname.partition(".")[0] not in STAND_INS:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        # of a local file, which is all that is asked for, the cached path is its own
        return _Name(spec.name, (), {"cached_path": staticmethod(lambda path, **_: path)})

    def exec_module(self, module: object) -> None:
        pass


sys.meta_path.append(_Finder())
from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids  # noqa: E402  # pyright: ignore
from allennlp.nn.util import remove_sentence_boundaries  # noqa: E402  # pyright: ignore


@torch.inference_mode()
def main() -> None:
    """Embed by the steps of `ElmoEmbedder.embed_batch` (AllenNLP 0.9), which 2.x has no more."""
    request = read_request()
    torch.set_num_threads(request["threads"])
    folder = Path(request["folder"])
    model = _ElmoBiLm(str(folder / "options.json"), str(folder / "weights.hdf5")).eval()
    word_ids: dict[str, int] = {}
    if request.get("vocab_to_cache"):  # before the clock starts
        words = {word for call in request["calls"] for sentence in call for word in sentence}
        vocab = ["@@PADDING@@", "@@UNKNOWN@@", *sorted(words | {"a"})]
        word_ids = {word: index for index, word in enumerate(vocab)}
        model.create_cached_cnn_embeddings(vocab)

    def embed(sentences: list[list[str]]) -> list[np.ndarray]:
        if word_ids:
            rows = [torch.tensor([word_ids[word] for word in words]) for words in sentences]
            ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
            output = model(None, word_inputs=ids)
        else:
            output = model(batch_to_ids(sentences))
        layers = [
            remove_sentence_boundaries(layer, output["mask"])[0].unsqueeze(1)
            for layer in output["activations"]
        ]
        stacked = torch.cat(layers, dim=1)  # (B, L, W, 2D)
        return [stacked[row, :, : len(words)].numpy() for row, words in enumerate(sentences)]

    # without new states, sentences go on from those of the last call
    timed = time_embedding(request["calls"], embed, model._elmo_lstm.reset_states)
    answer(("allennlp", "torch", "numpy"), **timed)


if __name__ == "__main__":
    main()
