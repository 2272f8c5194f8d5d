"""Lines of raw text to sentences of words."""

from collections.abc import Iterable, Iterator

from elmokit.files.text_reader import ReadReport
from elmokit.text.normalization import Normalization, normalize
from elmokit.text.tokenizers.protocol import Tokenizer, sentences_batch


def tokenize_lines(
    lines: Iterable[str], tokenizer: Tokenizer, normalization: Normalization, report: ReadReport
) -> Iterator[list[str]]:
    """Yield and count the non-empty sentences of normalized lines; reads slightly ahead."""
    for sentences in sentences_of_lines(lines, tokenizer, normalization, report):
        yield from sentences


def sentences_of_lines(
    lines: Iterable[str], tokenizer: Tokenizer, normalization: Normalization, report: ReadReport
) -> Iterator[list[list[str]]]:
    """Yield what `tokenize_lines` does, line by line."""
    texts = (normalize(line, normalization) for line in lines)
    for sentences in sentences_batch(tokenizer, texts):
        found = [sentence for sentence in sentences if sentence]
        if len(found) < len(sentences):
            report.skipped["empty_sentence"] += len(sentences) - len(found)
        report.sentences += len(found)
        report.words += sum(map(len, found))
        yield found
