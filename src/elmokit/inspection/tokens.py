"""What a model's tokenizer makes of a text, and what the model reads of each token."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Literal

from elmokit.corpus.readers import ReadReport, TextLine, split_lines
from elmokit.text.alignment import Offsets, align, align_sentences
from elmokit.text.given_sentences import split_sentence
from elmokit.text.normalization import Normalization, normalize
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.weights.stored_bilm import LoadedBiLM, open_bilm
from elmokit.wording import printable


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
    for text in texts:
        counts["sentences"] += len(text.sentences)
        counts["tokens"] += len(text.tokens)
        for token in text.tokens:
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
    has_characters = model.config.char_cnn is not None
    width = model.config.char_vocab.max_characters  # a lexicon's rows end in the word's own id
    texts = [normalize(word, form) for word in words]
    rows = model.char_vocab.encode_words(texts).tolist() if has_characters else [[]] * len(texts)
    tokens = []
    for i, (text, row) in enumerate(zip(texts, rows, strict=True)):
        start, end = (None, None) if offsets is None else offsets[i]
        written = None if start is None else raw[start:end]
        tokens.append(
            Token(
                text=text, start=start, end=end, raw=written,
                changed_by=_changed_by(text, written, form),
                char_ids=tuple(char for char in row[:width] if char != model.char_vocab.padding_id),
                is_cut=has_characters and model.char_vocab.is_truncated(text),
                is_known=None if vocab is None else text in vocab,
            )
        )  # fmt: skip
    return tuple(tokens)


def _changed_by(
    text: str, written: str | None, form: Normalization
) -> Literal["normalization", "tokenizer"] | None:
    if written is None or written == text:
        return None
    return "normalization" if normalize(written, form) == text else "tokenizer"
