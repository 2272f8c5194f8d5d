"""Surprisal: how much each token, or typed word, surprises a biLM, in bits.

The same scores as those of `elmokit.evaluation.perplexity`, one row per target: 2 to the mean of a
column, without the spellings of unknown words, is the perplexity.
"""

import math
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from operator import attrgetter
from os import PathLike
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from elmokit.bilm.config import Direction
from elmokit.corpus.readers import ReadReport, TextLine, split_lines
from elmokit.errors import InputError, printable, shown
from elmokit.evaluation.perplexity import PerplexityCounter, PerplexityReport
from elmokit.evaluation.text_scorer import (
    BATCH_SENTENCES,
    ScoredSentences,
    ScoringPrecision,
    TextScorer,
    UnknownWords,
)
from elmokit.inference.layers_and_states import StartState
from elmokit.text.alignment import Offsets, align, align_sentences
from elmokit.text.given_sentences import GivenSentence, check_is_list, split_sentence
from elmokit.text.tokenizers.protocol import Tokenizer
from elmokit.weights.stored_bilm import LoadedBiLM, open_bilm

Punctuation = Literal["with-word", "drop"]
"""Whether a token of punctuation alone counts with the typed word that it stands at."""
_BITS = 1 / math.log(2)


@dataclass(frozen=True, slots=True)
class WordProbability:
    """One of the words that a direction expects most."""

    word: str
    probability: float


@dataclass(frozen=True, kw_only=True, slots=True)
class WordSurprisal:
    """A word, or a sentence end, and what both directions expected at its position."""

    file: str | None
    line: int | None
    """Line in that file, from 1."""
    sentence: int
    """Index of the sentence in the whole input, from 0."""
    index: int
    """Index of the word in its sentence, from 0; that of the sentence end is the word count."""
    word: str
    """As the model reads it: normalized. ``</S>`` is the end of a sentence."""
    start: int | None
    """First character in the raw text; none if that is unknown, and for sentence ends."""
    end: int | None
    """The character after the last one. Korean morphemes that share a syllable overlap (``갔다``:
    가 and 었 are both 갔); one that is not written is empty."""
    is_unknown: bool
    """Not in the vocabulary: ranks and entropies are those of ``<UNK>``."""
    spelling: float | None
    """−log₂ p(spelling | unknown) of an unknown word, which its surprisals contain; 0 for other
    words; none if unknown words are not spelled and have the surprisal of ``<UNK>``."""
    forward: float
    """−log₂ p(word | the words before it)."""
    backward: float
    """−log₂ p(word | the words after it). In the row of a sentence end this is the prediction of
    ``<S>``, with which the backward direction ends."""
    mean: float
    forward_rank: int
    """1 + the number of words that were likelier."""
    backward_rank: int
    forward_entropy: float
    """Of the distribution over the vocabulary, in bits: the surprisal to be expected here."""
    backward_entropy: float
    forward_top: tuple[WordProbability, ...]
    """The likeliest words, by descending probability; empty unless asked for."""
    backward_top: tuple[WordProbability, ...]


class _Source(NamedTuple):
    """Where a sentence comes from."""

    text: str = ""
    """The whole line."""
    file: str | None = None
    line: int | None = None
    offsets: Offsets | None = None


_Sourced = tuple[list[str], _Source]


class SurprisalRows(Iterator[WordSurprisal]):
    """The rows of a text, computed as they are read: some 100,000 words are held at a time."""

    def __init__(self, scorer: TextScorer, sentences: Iterable[_Sourced]) -> None:
        self._scorer, self._counter = scorer, PerplexityCounter()
        self._rows, self._text = self._read(sentences), ""

    def __next__(self) -> WordSurprisal:
        return next(self._rows)

    def report(self) -> PerplexityReport:
        """Return the perplexity, after the last row; `InputError` if there was none."""
        return self._counter.report(self._scorer)

    def typed(self, punctuation: Punctuation = "with-word") -> "Iterator[TypedWord]":
        """Return the typed words of lines of text instead of the rows."""
        for _, tokens in groupby(self, key=attrgetter("file", "line")):
            # the text is that of the first row of a line, the only one that was read of it so far
            yield from typed_of(self._text, tokens, punctuation)

    def _read(self, sentences: Iterable[_Sourced]) -> Iterator[WordSurprisal]:
        sources: deque[tuple[int, _Source]] = deque()

        def words_of() -> Iterator[list[str]]:
            for number, (words, source) in enumerate(sentences):
                if words:  # the scorer leaves out sentences without words
                    sources.append((number, source))
                yield words

        for scored in self._scorer.score(words_of()):
            self._counter.add(scored)
            yield from self._rows_of(scored, sources)

    def _rows_of(
        self, scored: ScoredSentences, sources: deque[tuple[int, _Source]]
    ) -> Iterator[WordSurprisal]:
        # the targets of all sentences follow each other, as the rows do
        figures = (self._figures(scored, direction) for direction in get_args(Direction))
        targets = zip(*figures, (scored.spelling * _BITS).tolist(), strict=True)
        is_spelled = self._scorer.spelling is not None
        for sentence in scored.tokens.sentences:
            number, source = sources.popleft()
            self._text = source.text
            places = iter(source.offsets or ())
            for index, word in enumerate(sentence[1:].tolist()):
                forward, backward, spelling = next(targets)
                start, end = next(places, (None, None))
                yield WordSurprisal(
                    file=source.file, line=source.line, sentence=number, index=index,
                    word=scored.tokens.words[word], start=start, end=end,
                    is_unknown=bool(scored.is_unknown[word]) and index < len(sentence) - 2,
                    spelling=spelling if is_spelled else None,
                    forward=forward[0] + spelling, backward=backward[0] + spelling,
                    mean=(forward[0] + backward[0]) / 2 + spelling,
                    forward_rank=forward[1], backward_rank=backward[1],
                    forward_entropy=forward[2], backward_entropy=backward[2],
                    forward_top=forward[3], backward_top=backward[3],
                )  # fmt: skip

    def _figures(self, scored: ScoredSentences, direction: Direction) -> Iterator[Any]:
        """Yield bits, rank, entropy and likeliest words of every target."""
        words, table = self._scorer.vocab.words, scored.distributions[direction]
        bits = (scored.nats[direction] * _BITS).tolist()
        tops = (
            tuple(WordProbability(words[i - 1], prob) for i, prob in zip(ids, probs, strict=True))
            for ids, probs in zip(table.top_ids.tolist(), table.top_probs.tolist(), strict=True)
        )
        return zip(bits, table.ranks.tolist(), table.entropies.tolist(), tops, strict=True)


def surprisal(
    model: LoadedBiLM | str | PathLike[str],
    sentences: Iterable[GivenSentence],
    *,
    top: int = 0,
    batch_size: int = BATCH_SENTENCES,
    state: StartState | str = "warm",
    precision: ScoringPrecision | str = "auto",
    unknown: UnknownWords | str = "auto",
) -> SurprisalRows:
    """Score every word and every sentence end of ``sentences``, a row each, in their order.

    Args:
        model: With vocabulary and softmax; or its directory or name.
        sentences: Strings, which the model's tokenizer splits, or lists of words. Empty ones are
            counted and have no rows.
        top: Most likely words to return at each position, for each direction.
        batch_size: Most sentences computed together; does not affect the result.
        state: Start of every sentence, as for `elmokit.perplexity`.
        precision: As for `elmokit.perplexity`; with ``bf16``, ranks and entropies are approximate
            to the same degree. Likeliest words are always fp32.
        unknown: What unknown words are scored as: ``spelled`` (``<UNK>`` and their spelling),
            ``unk`` (``<UNK>`` alone), or ``auto``: spelled if the model knows how.

    Returns:
        An iterator, which holds about 100,000 words at a time, fewer with ``top``; ``report()``
        returns the perplexity of what was read.

    Raises:
        ValueError: for an unknown option, or a model without vocabulary or softmax.
        TypeError: if ``sentences`` is one string, or a sentence holds anything but strings.
    """
    check_is_list(sentences)
    loaded = open_bilm(model)

    def sourced() -> Iterator[_Sourced]:
        for i, sentence in enumerate(sentences):
            words = split_sentence(sentence, loaded.tokenize, where=f"sentence {i}")
            offsets = align(words, sentence) if isinstance(sentence, str) else None
            yield words, _Source(offsets=offsets)

    scorer = TextScorer(
        loaded, top=top, batch_size=batch_size, state=state, precision=precision, unknown=unknown
    )
    return SurprisalRows(scorer, sourced())


def surprisal_of_words(scorer: TextScorer, sentences: Iterable[list[str]]) -> SurprisalRows:
    """As `surprisal`, with a scorer that was made before."""
    return SurprisalRows(scorer, ((words, _Source()) for words in sentences))


def surprisal_of_lines(
    scorer: TextScorer,
    tokenizer: Tokenizer,
    lines: Iterable[TextLine],
    *,
    read: ReadReport | None = None,
) -> SurprisalRows:
    """Score raw text (`elmokit.corpus.readers.read_text_lines`), counted in ``read``."""

    def sourced() -> Iterator[_Sourced]:
        split = split_lines(lines, tokenizer, normalization=scorer.form, report=read)
        for line, sentences in split:
            file = None if line.path is None else printable(line.path)
            all_offsets = align_sentences(sentences, line.text)
            for words, offsets in zip(sentences, all_offsets, strict=True):
                yield words, _Source(line.text, file, line.number, offsets)

    return SurprisalRows(scorer, sourced())


@dataclass(frozen=True, kw_only=True, slots=True)
class TypedWord:
    """A word between spaces, as readers saw it; the first fields are those of `WordSurprisal`."""

    file: str | None
    line: int | None
    sentence: int | None
    index: int
    """Among the typed words of its sentence, from 0."""
    word: str
    start: int
    end: int
    num_tokens: int
    """Tokens that are counted; 0 if the tokenizer leaves the word out, or it is punctuation alone
    of which nothing is counted."""
    is_unknown: bool
    spelling: float | None
    """Bits of the spelling of unknown tokens, which the surprisals contain; none if they are scored
    as ``<UNK>``."""
    forward: float
    backward: float
    mean: float
    forward_entropy: float
    """Bits, before its first token is read."""
    backward_entropy: float
    """Bits, before its last token is read, from the end."""
    is_last: bool
    """Whether the sentence ends after it."""


def typed_words(
    model: LoadedBiLM | str | PathLike[str],
    sentences: Sequence[str],
    *,
    punctuation: Punctuation = "with-word",
    **options: Any,
) -> list[list[TypedWord]]:
    """Return surprisal and entropy of the typed words of every sentence.

    ``options`` are those of `surprisal`.
    """
    tokens: list[list[WordSurprisal]] = [[] for _ in sentences]
    for row in surprisal(model, sentences, **options):
        tokens[row.sentence].append(row)
    typed = []
    for text, parts in zip(sentences, tokens, strict=True):
        typed.append(typed_of(text, parts, punctuation))
        left_out = next((word.word for word in typed[-1] if word.num_tokens == 0), None)
        if left_out is not None:
            raise InputError(f"The tokenizer makes no token of {shown(left_out)} in {shown(text)}.")
    return typed


def typed_of(
    text: str, tokens: Iterable[WordSurprisal], punctuation: Punctuation = "with-word"
) -> list[TypedWord]:
    """Return the typed words of a text, of whose tokens the rows are given."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    begins = np.array([begin for begin, _ in spans])
    parts: list[list[WordSurprisal]] = [[] for _ in spans]
    for token in tokens:
        if token.start is not None:  # sentence ends have no place in the text
            owner = int(np.searchsorted(begins, token.start, side="right")) - 1
            parts[max(0, owner)].append(token)
    # a word without tokens is in the sentence of the word before it
    numbers, number = [], next((own[0].sentence for own in parts if own), None)
    for own in parts:
        number = own[0].sentence if own else number
        numbers.append(number)
    source = next((own[0] for own in parts if own), None)
    lengths, so_far, typed = Counter(numbers), Counter[int | None](), []
    for (start, end), own, number in zip(spans, parts, numbers, strict=True):
        counted = own
        if punctuation == "drop":
            is_word = [not all(unicodedata.category(c)[0] == "P" for c in t.word) for t in own]
            counted = list(compress(own, is_word)) or own
        forward = sum(token.forward for token in counted)
        backward = sum(token.backward for token in counted)
        spellings = [token.spelling for token in counted if token.spelling is not None]
        typed.append(
            TypedWord(
                file=None if source is None else source.file,
                line=None if source is None else source.line,
                sentence=number, index=so_far[number], word=text[start:end],
                start=start, end=end, num_tokens=len(counted),
                is_unknown=any(token.is_unknown for token in counted),
                spelling=sum(spellings) if spellings else None,
                forward=forward, backward=backward, mean=(forward + backward) / 2,
                forward_entropy=counted[0].forward_entropy if counted else math.nan,
                backward_entropy=counted[-1].backward_entropy if counted else math.nan,
                is_last=so_far[number] == lengths[number] - 1,
            )
        )  # fmt: skip
        so_far[number] += 1
    return typed
