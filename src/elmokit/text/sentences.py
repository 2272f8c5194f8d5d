"""Lines of raw text to sentences of words."""

from collections.abc import Iterable, Iterator

from elmokit.text.char_vocab import Normalization, normalize
from elmokit.text.tokenizers.registry import Tokenizer, sentences_batch


def tokenize_lines(
    lines: Iterable[str], tokenizer: Tokenizer, normalization: Normalization
) -> Iterator[list[str]]:
    """Yield the sentences of all lines, in order; some may have no word.

    Args:
        lines: Raw text, read a little ahead.
        tokenizer: Splits lines into sentences of words; many at once if it can.
        normalization: Unicode form in which the tokenizer sees the text.
    """
    texts = (normalize(line, normalization) for line in lines)
    for sentences in sentences_batch(tokenizer, texts):
        yield from sentences
