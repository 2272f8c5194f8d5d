"""What is measured: models with random weights of the released shapes, and sentences."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import cycle
from pathlib import Path

import torch

from elmokit import CharVocabConfig, PretrainedBiLM, write_bilm_tf
from elmokit.training.pretraining.presets import pretrain_config

Sentence = list[str]
WEIGHTS_DIR = Path.home() / ".cache" / "elmokit-bench" / "weights"
"""Where weights are kept between runs."""
SHAPES = ("tiny", "small", "original")
"""Presets whose network is measured; small and original are the released 2x1024_128 and 2x4096_512.
"""


def model_folder(shape: str) -> Path:
    """Return a folder with ``options.json``, ``weights.hdf5`` and our ``model``; made if absent."""
    folder = WEIGHTS_DIR / f"{shape}-seed0"
    finished = folder / "finished"
    if not finished.exists():
        # text is processed as in the original, which peers share
        char_vocab = CharVocabConfig(normalization="none", truncation="byte")
        model = PretrainedBiLM(replace(pretrain_config(shape).model, char_vocab=char_vocab))
        model.reset_parameters(torch.Generator().manual_seed(0))
        folder.mkdir(parents=True, exist_ok=True)
        write_bilm_tf(model, folder / "options.json", folder / "weights.hdf5")
        model.save(folder / "model")
        finished.touch()
    return folder


def read_text(path: Path | None) -> list[Sentence]:
    """Read tokenized sentences, one a line, words separated by white space.

    Without a path it is the English text of `elmokit demo`: short sentences, few distinct words,
    good for a trial, not for figures to publish.
    """
    source = path or files("elmokit").joinpath("data/demo/en.txt")
    text = source.read_text(encoding="utf-8")
    sentences = [words for line in text.split("\n") if (words := line.split())]
    if not sentences:
        raise ValueError(f"{path}: no sentence; expected one a line, words separated by spaces.")
    return sentences


def take_words(sentences: Sequence[Sentence], num_words: int) -> list[Sentence]:
    """Return sentences of so many words, the last one cut; a short text is read over and over."""
    taken: list[Sentence] = []
    for sentence in cycle(sentences):
        if num_words <= 0:
            break
        taken.append(sentence[:num_words])
        num_words -= len(sentence)
    return taken


def text_metadata(sentences: Sequence[Sentence], path: Path | None) -> dict[str, object]:
    """Say what text was read."""
    num_words = sum(map(len, sentences))
    return {
        "text": "demo text of the package" if path is None else path.name,
        "sentences": len(sentences),
        "words": num_words,
        "distinct_words": len({word for sentence in sentences for word in sentence}),
        "words_per_sentence": round(num_words / len(sentences), 1),
    }
