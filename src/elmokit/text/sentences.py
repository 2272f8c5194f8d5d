"""Lines of raw text to sentences of words."""

from collections.abc import Iterable, Iterator

from elmokit.files.text_reader import ReadReport
from elmokit.text.normalization import Normalization
from elmokit.text.tokenized_block import TokenizedBlock
from elmokit.text.tokenizers.protocol import Tokenizer, normalized_sentences
from elmokit.text.worker_processes import ONE_PROCESS, Workers, tokenized_blocks


def tokenize_lines(
    lines: Iterable[str],
    tokenizer: Tokenizer,
    normalization: Normalization,
    report: ReadReport,
    *,
    workers: Workers = ONE_PROCESS,
) -> Iterator[list[str]]:
    """Yield and count the non-empty sentences of normalized lines; reads slightly ahead.

    ``workers`` tokenize, with the same result.
    """
    for sentences in sentences_of_lines(lines, tokenizer, normalization, report, workers=workers):
        yield from sentences


def sentences_of_lines(
    lines: Iterable[str],
    tokenizer: Tokenizer,
    normalization: Normalization,
    report: ReadReport,
    *,
    workers: Workers = ONE_PROCESS,
) -> Iterator[list[list[str]]]:
    """Yield what `tokenize_lines` does, line by line."""
    if workers.count > 1:
        for block in blocks_of_sentences(lines, tokenizer, normalization, report, workers=workers):
            yield from (list(filter(None, sentences)) for sentences in block.lines())
        return
    for sentences in normalized_sentences(tokenizer, lines, normalization):
        found = [sentence for sentence in sentences if sentence]
        if len(found) < len(sentences):
            report.skipped["empty_sentence"] += len(sentences) - len(found)
        report.sentences += len(found)
        report.words += sum(map(len, found))
        yield found


def blocks_of_sentences(
    lines: Iterable[str],
    tokenizer: Tokenizer,
    normalization: Normalization,
    report: ReadReport,
    *,
    workers: Workers = ONE_PROCESS,
) -> Iterator[TokenizedBlock]:
    """Yield what `tokenize_lines` does in blocks, which are quick to count."""
    for block in tokenized_blocks(lines, tokenizer, normalization, workers):
        if block.num_empty:
            report.skipped["empty_sentence"] += block.num_empty
        report.sentences += block.num_sentences
        report.words += len(block.tokens)
        yield block
