"""Lines of raw text to sentences of words."""

from collections.abc import Iterable, Iterator

from elmokit.files.text_reader import ReadReport
from elmokit.text.normalization import Normalization, normalize
from elmokit.text.tokenizers.protocol import Tokenizer, sentences_batch


def tokenize_lines(
    lines: Iterable[str],
    tokenizer: Tokenizer,
    normalization: Normalization,
    report: ReadReport,
    *,
    num_workers: int = 1,
) -> Iterator[list[str]]:
    """Yield and count the non-empty sentences of normalized lines; reads slightly ahead.

    ``num_workers`` above 1 tokenizes in so many other processes, with the same result.
    """
    for sentences in sentences_of_lines(
        lines, tokenizer, normalization, report, num_workers=num_workers
    ):
        yield from sentences


def sentences_of_lines(
    lines: Iterable[str],
    tokenizer: Tokenizer,
    normalization: Normalization,
    report: ReadReport,
    *,
    num_workers: int = 1,
) -> Iterator[list[list[str]]]:
    """Yield what `tokenize_lines` does, line by line."""
    if num_workers > 1:
        from elmokit.text.worker_processes import sentences_in_processes

        by_line = sentences_in_processes(lines, tokenizer, normalization, num_workers)
    else:
        texts = (normalize(line, normalization) for line in lines)
        by_line = sentences_batch(tokenizer, texts)
    for sentences in by_line:
        found = [sentence for sentence in sentences if sentence]
        if len(found) < len(sentences):
            report.skipped["empty_sentence"] += len(sentences) - len(found)
        report.sentences += len(found)
        report.words += sum(map(len, found))
        yield found
