"""Lines of raw text to sentences of words."""

from collections.abc import Iterable, Iterator

from elmokit.text.normalization import Normalization, normalize
from elmokit.text.tokenizers.protocol import Tokenizer, sentences_batch


def tokenize_lines(
    lines: Iterable[str], tokenizer: Tokenizer, normalization: Normalization
) -> Iterator[list[str]]:
    """Yield the sentences of all lines, in order; some may have no word.

    Args:
        lines: Raw text, read a little ahead.
        tokenizer: Splits lines into sentences of words; many at once if it can.
        normalization: Profile by which the text is spelled before the tokenizer sees it.
    """
    texts = (normalize(line, normalization) for line in lines)
    for sentences in sentences_batch(tokenizer, texts):
        yield from sentences
