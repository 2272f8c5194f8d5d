"""The sentences of some lines in a form that is quick to pass on, to read and to count."""

import itertools
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TokenizedBlock:
    """Sentences as indices into their distinct words."""

    joined_words: str
    """The distinct words, with a space between them, which no word contains."""
    tokens: array
    """The words of all sentences, as indices into those."""
    lengths: array
    """Words of each sentence."""
    sentences_of_lines: array
    """Sentences of each line."""

    @classmethod
    def of(cls, lines: Iterable[Sequence[Sequence[str]]]) -> "TokenizedBlock":
        """Collect the sentences of lines; no word may be empty or contain a space."""
        index_of: defaultdict[str, int] = defaultdict()
        index_of.default_factory = index_of.__len__
        tokens, lengths, counts = array("I"), array("I"), array("I")
        for sentences in lines:
            counts.append(len(sentences))
            lengths.extend(map(len, sentences))
            for sentence in sentences:
                tokens.extend(map(index_of.__getitem__, sentence))
        return cls(" ".join(index_of), tokens, lengths, counts)

    @property
    def num_sentences(self) -> int:
        """Number of sentences with a word."""
        return len(self.lengths) - self.num_empty

    @property
    def num_empty(self) -> int:
        """Number of sentences without a word."""
        return self.lengths.count(0)

    @property
    def words(self) -> list[str]:
        """The distinct words."""
        return self.joined_words.split(" ") if self.tokens else []

    def counts(self) -> list[int]:
        """Return how often each of ``words`` occurs."""
        import numpy as np  # not at the start of every command

        return np.bincount(np.frombuffer(self.tokens, np.uintc)).tolist()

    def lines(self) -> Iterator[list[list[str]]]:
        """Yield the sentences of each line."""
        tokens = list(map(self.words.__getitem__, self.tokens))
        ends = itertools.accumulate(self.lengths, initial=0)
        found = (tokens[begin:end] for begin, end in itertools.pairwise(ends))
        return (list(itertools.islice(found, count)) for count in self.sentences_of_lines)
