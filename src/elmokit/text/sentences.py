"""Lines of raw text to sentences of words."""

from collections.abc import Iterable, Iterator

from elmokit.files.text_reader import ReadReport
from elmokit.text.normalization import Normalization, normalize
from elmokit.text.tokenizers.protocol import Tokenizer, sentences_batch


def tokenize_lines(
    lines: Iterable[str], tokenizer: Tokenizer, normalization: Normalization, report: ReadReport
) -> Iterator[list[str]]:
    """Yield and count the non-empty sentences of normalized lines; reads slightly ahead."""
    texts = (normalize(line, normalization) for line in lines)
    for sentences in sentences_batch(tokenizer, texts):
        for sentence in sentences:
            if not sentence:
                report.skipped["empty_sentence"] += 1
                continue
            report.sentences += 1
            report.words += len(sentence)
            yield sentence
