"""Tokens of a text as a model reads them, and one word on its way through the model."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

import numpy as np

from elmokit.corpus.readers import ReadReport, TextLine, split_lines
from elmokit.errors import InputError, printable
from elmokit.inference.frozen_bilm import FrozenBiLM
from elmokit.shapes import Float, Int
from elmokit.text.alignment import Offsets, align, align_sentences
from elmokit.text.char_vocab import CHAR_PADDING, WORD_BEGIN, WORD_END
from elmokit.text.given_sentences import GivenSentence, split_sentence
from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.weights.stored_bilm import LoadedBiLM, StoredBiLM, open_bilm


@dataclass(frozen=True, kw_only=True)
class FilterTrace:
    """The N filters of one width: where each found its maximum, and that maximum."""

    width: int
    """In characters, which are bytes and boundaries."""
    positions: Int[np.ndarray, " N"]
    """First character of the winning window, as an index of the row; the first of equals."""
    windows: tuple[str, ...]
    """The winning windows as text, see `window_text`."""
    values: Float[np.ndarray, " N"]
    """After the activation."""


@dataclass(frozen=True, kw_only=True)
class HighwayTrace:
    """A highway layer: ``gates * relu(transform(x)) + (1 - gates) * x``."""

    gates: Float[np.ndarray, " F"]
    output: Float[np.ndarray, " F"]


@dataclass(frozen=True, kw_only=True)
class LayerTrace:
    """A layer at the word."""

    forward: Float[np.ndarray, " D"]
    backward: Float[np.ndarray, " D"]
    """In layer 0 both are the token's vector."""

    @property
    def norms(self) -> tuple[float, float]:
        """Euclidean norms of both halves."""
        return float(np.linalg.norm(self.forward)), float(np.linalg.norm(self.backward))


@dataclass(frozen=True, kw_only=True)
class WordTrace:
    """All numbers of a word. A word-input model has no characters, filters and highways."""

    words: tuple[str, ...]
    """The sentence as the model reads it."""
    index: int
    """Of the word."""
    word: str
    raw_bytes: tuple[int, ...]
    """UTF-8, as far as the row has room."""
    char_ids: tuple[int, ...]
    """The row that the CNN reads: word begin, bytes + 1, word end, padding."""
    filters: tuple[FilterTrace, ...]
    """By width; their values joined are the input of the first highway."""
    highways: tuple[HighwayTrace, ...]
    token: Float[np.ndarray, " D"]
    """The last highway after the projection; equals layer 0."""
    layers: tuple[LayerTrace, ...]
    weights: tuple[float, ...]
    """Of the layers in the mixture."""
    gamma: float
    mixture: Float[np.ndarray, " E"]
    """``gamma * sum(weight * layer)``, of 2D numbers."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, and the norms of the layers."""
        return {**vars(self), "norms": tuple(layer.norms for layer in self.layers)}


def trace(
    model: LoadedBiLM | str | PathLike[str],
    sentence: GivenSentence,
    *,
    word: int = 0,
    weights: Sequence[float] | None = None,
    gamma: float = 1.0,
) -> WordTrace:
    """Compute a sentence from the zero state, and keep what makes one word.

    Args:
        model: A loaded model, or its directory or name.
        sentence: A string, which the model's tokenizer splits, or a list of words.
        word: Index of the word in the sentence.
        weights: Of the layers in the mixture, token layer first, with a sum of 1; default: equal.
        gamma: Scale of the mixture.

    Raises:
        InputError: for a sentence without that word, weights that do not fit, or an infinite gamma.
        TypeError: if ``sentence`` is neither a string nor a list of words.
    """
    model = open_bilm(model)
    if model.config.lexicon is not None:
        raise InputError("The model reads characters by lists: there are no bytes to trace.")
    form = model.config.char_vocab.normalization
    raw_words = split_sentence(sentence, model.tokenize, where="`sentence`")
    words = [normalize(raw, form) for raw in raw_words]
    if not 0 <= word < len(words):
        listed = " ".join(f"{i}:{text}" for i, text in enumerate(words[:50])) or "none"
        raise InputError(f"`word` must be the index of one of the words ({listed}), got {word}.")
    num_layers = model.num_layers
    mix = (1 / num_layers,) * num_layers if weights is None else tuple(map(float, weights))
    if len(mix) != num_layers or not abs(sum(mix) - 1) <= 1e-3:  # or NaN
        raise InputError(f"`weights` must be {num_layers} numbers with a sum of 1, got {weights}.")
    if not math.isfinite(gamma):
        raise InputError(f"`gamma` must be a finite number, such as 0.5, got {gamma}.")
    bilm = FrozenBiLM(model)
    vectors, tokens = bilm.encode([words])
    layers = bilm.engine.run(vectors, tokens.sentences).vectors[0][:, word]  # (L, 2D)
    char_ids, filters, highways = _characters(model, words[word])
    dim = model.config.lstm.projection_dim
    weighted = np.array(mix, dtype=np.float32) @ layers
    return WordTrace(
        words=tuple(words), index=word, word=words[word], token=layers[0, :dim],
        raw_bytes=tuple(char - 1 for char in char_ids if char <= 256),
        char_ids=char_ids, filters=filters, highways=highways,
        layers=tuple(
            LayerTrace(forward=row[:dim], backward=row[dim:]) for row in layers
        ),
        weights=mix, gamma=gamma, mixture=np.float32(gamma) * weighted,
    )  # fmt: skip


def _characters(
    model: StoredBiLM, word: str
) -> tuple[tuple[int, ...], tuple[FilterTrace, ...], tuple[HighwayTrace, ...]]:
    """Follow the row of a word's characters through filters and highways."""
    cnn = model.config.char_cnn
    if cnn is None:
        return (), (), ()
    row = model.ids_of_words([word])[0]
    weights = {name.removeprefix("token_encoder."): array for name, array in model.arrays().items()}
    characters = weights["char_embedding.weight"][row]  # (C, E)
    filters = []
    for number, (width, count) in enumerate(cnn.filters):
        weight, bias = (weights[f"convolutions.{number}.{part}"] for part in ("weight", "bias"))
        windows = np.lib.stride_tricks.sliding_window_view(characters, width, axis=0)  # (P, E, w)
        answers = windows.reshape(len(windows), -1) @ weight.reshape(count, -1).T + bias  # (P, N)
        # The activation never falls, so the maximum may be taken before it.
        positions, best = answers.argmax(axis=0), answers.max(axis=0)
        filters.append(
            FilterTrace(
                width=width, positions=positions,
                windows=tuple(window_text(row[at : at + width].tolist()) for at in positions),
                values=np.maximum(best, 0) if cnn.activation == "relu" else np.tanh(best),
            )
        )  # fmt: skip
    # the order of the widths is that of the network's own concatenation
    x = np.concatenate([answer.values for answer in filters])  # (F,)
    highways = []
    for number in range(cnn.num_highway):
        carry, transform = (
            weights[f"highways.{number}.{part}.weight"] @ x
            + weights[f"highways.{number}.{part}.bias"]
            for part in ("carry", "transform")
        )
        gates = 1 / (1 + np.exp(-carry))
        x = gates * np.maximum(transform, 0) + (1 - gates) * x
        highways.append(HighwayTrace(gates=gates, output=x))
    return tuple(row.tolist()), tuple(filters), tuple(highways)


def window_text(char_ids: Sequence[int]) -> str:
    r"""Return a stretch of a row for readers.

    ``^`` is word begin, ``$`` word end, ``_`` padding; bytes that are no whole character are shown
    as ``\xeb``.
    """
    signs = {WORD_BEGIN + 1: "^", WORD_END + 1: "$", CHAR_PADDING + 1: "_"}
    text, pending = "", b""
    for char in char_ids:
        if char <= 256:
            pending += bytes([char - 1])
            continue
        text += pending.decode("utf-8", "backslashreplace") + signs.get(char, f"<{char}>")
        pending = b""
    return text + pending.decode("utf-8", "backslashreplace")


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A token, its place in the raw text, and what the model reads of it."""

    text: str
    """As the model reads it: normalized."""
    start: int | None
    """First character in the raw text; none if it was not found there."""
    end: int | None
    """The character after the last one. Korean morphemes that share a syllable overlap (``갔다``:
    가 and 었 are both 갔); one that is not written is empty."""
    raw: str | None
    """The raw text at that place."""
    changed_by: Literal["normalization", "tokenizer"] | None
    """What made ``text`` of ``raw`` (``“`` → ``"``: normalization; ``갔다`` → ``가 었 다``:
    tokenizer); none if they are the same, or the place is unknown."""
    char_ids: tuple[int, ...]
    """What the character CNN reads, without padding: word begin, the UTF-8 bytes + 1 (or the
    characters' ids in a lexicon), word end. Empty for a word-input model."""
    is_cut: bool
    """It has more bytes than the model's ``max_characters`` - 2; the rest is not read."""
    is_known: bool | None
    """In the vocabulary, so that it can be predicted; none for a model without one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizedText:
    """A sentence, or a line of several, with its tokens."""

    raw: str
    sentences: tuple[tuple[Token, ...], ...]
    """One, for a sentence from Python; those that the tokenizer found in a line of a file."""
    file: str | None = None
    line: int | None = None
    """In ``file``, from 1."""

    @property
    def tokens(self) -> tuple[Token, ...]:
        """All of them."""
        return tuple(token for sentence in self.sentences for token in sentence)


def count_tokens(*texts: TokenizedText) -> Counter[str]:
    """Count sentences and tokens; all counts are 0 for no text.

    Of the tokens: ``unknown`` ones are not in the vocabulary, ``cut`` ones too long, ``normalized``
    and ``altered`` ones changed by normalization or tokenizer, ``unplaced`` ones not found in the
    raw text.
    """
    counts = Counter(sentences=0, tokens=0, unknown=0, cut=0, normalized=0, altered=0, unplaced=0)
    counts["sentences"] = sum(len(text.sentences) for text in texts)
    for token in (token for text in texts for token in text.tokens):
        counts["tokens"] += 1
        counts["unknown"] += token.is_known is False
        counts["cut"] += token.is_cut
        counts["normalized"] += token.changed_by == "normalization"
        counts["altered"] += token.changed_by == "tokenizer"
        counts["unplaced"] += token.start is None
    return counts


def tokenize(
    model: LoadedBiLM | str | PathLike[str],
    sentence: str,
    *,
    tokenizer: Tokenizer | None = None,
) -> TokenizedText:
    """Return what the model's own tokenizer makes of a sentence, as `Embedder.embed` reads it.

    Args:
        model: A loaded model, or its directory or name.
        sentence: Raw text; read as one sentence.
        tokenizer: Instead of the model's own.

    Raises:
        TypeError: if ``sentence`` is not a string.
        ValueError: if it holds NUL or half of a surrogate pair.
    """
    if not isinstance(sentence, str):
        raise TypeError(f"`sentence` must be a string, got {sentence!r:.60}.")
    model = open_bilm(model)
    split = model.tokenize
    if tokenizer is not None:
        split = NormalizingTokenizer(tokenizer, model.config.char_vocab.normalization).tokenize
    words = split_sentence(sentence, split, where="`sentence`")
    tokens = _describe(model, words, sentence, align(words, sentence))
    return TokenizedText(raw=sentence, sentences=(tokens,) if tokens else ())


def tokenize_lines_of(
    model: LoadedBiLM,
    lines: Iterable[TextLine],
    tokenizer: Tokenizer,
    *,
    read: ReadReport | None = None,
) -> Iterator[TokenizedText]:
    """Yield every line of raw text with its sentences, split as for training and perplexity."""
    form = model.config.char_vocab.normalization
    for line, sentences in split_lines(lines, tokenizer, normalization=form, report=read):
        all_offsets = align_sentences(sentences, line.text)
        yield TokenizedText(
            raw=line.text,
            sentences=tuple(
                _describe(model, words, line.text, offsets)
                for words, offsets in zip(sentences, all_offsets, strict=True)
            ),
            file=None if line.path is None else printable(line.path),
            line=line.number,
        )


def _describe(
    model: LoadedBiLM, words: Sequence[str], raw: str, offsets: Offsets | None
) -> tuple[Token, ...]:
    form, vocab = model.config.char_vocab.normalization, model.word_vocab
    char_vocab, has_characters = model.char_vocab, model.config.char_cnn is not None
    width = model.config.char_vocab.max_characters  # a lexicon's rows end in the word's own id
    texts = [normalize(word, form) for word in words]
    rows = char_vocab.encode_words(texts).tolist() if has_characters else [[]] * len(texts)
    tokens = []
    for i, (text, row) in enumerate(zip(texts, rows, strict=True)):
        start, end = (None, None) if offsets is None else offsets[i]
        written = None if start is None else raw[start:end]
        changed_by = None
        if written is not None and written != text:
            changed_by = "normalization" if normalize(written, form) == text else "tokenizer"
        tokens.append(
            Token(
                text=text, start=start, end=end, raw=written, changed_by=changed_by,
                char_ids=tuple(char for char in row[:width] if char != char_vocab.padding_id),
                is_cut=has_characters and char_vocab.is_truncated(text),
                is_known=None if vocab is None else text in vocab,
            )
        )  # fmt: skip
    return tuple(tokens)
