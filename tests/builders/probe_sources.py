"""Made-up vectors and annotated sentences for the tests of `elmokit.probes`."""

from pathlib import Path

import numpy as np

from elmokit.errors import Location
from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.formats.senses import Sense, SenseInventory, SenseOccurrence, SenseSentence

LOCATION = Location(path=Path("data"), line=1)


class TableSource:
    """Gives every word the vectors that a table has for it: word -> (S, X).

    Attributes:
        read: The sentences it was asked for.
    """

    kept_as = np.float32

    def __init__(self, table, names=("table",)):
        self.table = {
            word: np.array(rows, "f4").reshape(len(names), -1) for word, rows in table.items()
        }
        self.names = names
        self.read = []

    def stream(self, sentences):
        for words in sentences:
            self.read.append(tuple(words))
            yield np.stack([self.table[word] for word in words], axis=1)


def tagged(text):
    """``the/DET cat/NOUN`` as a sentence."""
    pairs = [word.rsplit("/", 1) for word in text.split()]
    tokens, tags = (tuple(column) for column in zip(*pairs, strict=True))
    return TaggedSentence(tokens=tokens, tags=tags, location=LOCATION)


def annotated(name, text, *words, document="d"):
    """A sentence with words given as (start, end, lemma, pos, *senses)."""
    occurrences = tuple(
        SenseOccurrence(
            name=f"{name}.{number}", start=start, end=end, lemma=lemma, pos=pos, sense_keys=senses
        )
        for number, (start, end, lemma, pos, *senses) in enumerate(words)
        for senses in [tuple(senses)]
    )
    return SenseSentence(tokens=tuple(text.split()), occurrences=occurrences, document=document)


def inventory(**senses):
    """An inventory of ``lemma_n=["first sense", …]``."""
    by_lemma = {}
    for name, keys in senses.items():
        lemma, pos = name.rsplit("_", 1)
        by_lemma[lemma, pos] = [
            Sense(lemma=lemma, pos=pos, sense_key=key, rank=rank, synset=key, gloss="")
            for rank, key in enumerate(keys, 1)
        ]
    return SenseInventory(by_lemma)
