"""Lines of raw text to sentences of words."""

from collections.abc import Iterable, Iterator

from elmokit.text.normalization import Normalization, normalize
from elmokit.text.tokenizers.protocol import Tokenizer, sentences_batch


def tokenize_lines(
    lines: Iterable[str], tokenizer: Tokenizer, normalization: Normalization
) -> Iterator[list[str]]:
    """Yield the sentences of normalized lines, which are read slightly ahead; some may be empty."""
    texts = (normalize(line, normalization) for line in lines)
    for sentences in sentences_batch(tokenizer, texts):
        yield from sentences
