"""Corpus files to lines, and lines to tokenized sentences, streamed.

Unreadable lines are skipped and counted; beyond a limit, and in tables, they are an error, so that
a file in another encoding does not silently become an empty corpus.
"""

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from elmokit.errors import FormatError
from elmokit.files.lines import MAX_CORPUS_LINE_BYTES
from elmokit.files.remote import AnyFile
from elmokit.files.sources import Paths, find_files
from elmokit.files.text_reader import ReadReport, describe_skips, read_lines
from elmokit.text.normalization import DEFAULT_NORMALIZATION, Normalization
from elmokit.text.sentences import ONE_PROCESS, Workers, sentences_of_lines, tokenize_lines
from elmokit.text.tokenizers.protocol import Tokenizer

_log = logging.getLogger(__name__)


class TextLine(NamedTuple):
    path: AnyFile | None
    number: int
    """From 1; in JSON lines and Parquet the lines of a record's text count."""
    text: str


def read_text_lines(
    files: Sequence[AnyFile],
    report: ReadReport,
    *,
    text_field: str | None = None,
    max_line_bytes: int = MAX_CORPUS_LINE_BYTES,
) -> Iterator[TextLine]:
    """Yield the non-blank lines of files, and count them in ``report``.

    Lines over ``max_line_bytes`` are skipped (in tables an error), and never held in memory.
    """
    has_text = False
    for path in files:
        lines = read_lines(path, report, text_field=text_field, max_line_bytes=max_line_bytes)
        for number, line in lines:
            has_text = True
            yield TextLine(path, number, line)
    if report.num_bad:
        faults = describe_skips(report.faults)
        _log.warning("%d of %d corpus lines were skipped: %s", report.num_bad, report.lines, faults)
    names = ", ".join(map(str, files[:3])) + (", ..." if len(files) > 3 else "")
    if not has_text:
        raise FormatError(
            f"{names}: the corpus holds no text ({describe_skips(report.skipped) or 'all empty'}). "
            "Expected one sentence or paragraph per line, in UTF-8."
        )


def read_sentences(
    paths: Paths,
    tokenizer: Tokenizer,
    *,
    normalization: Normalization = DEFAULT_NORMALIZATION,
    report: ReadReport | None = None,
    text_field: str | None = None,
    workers: Workers = ONE_PROCESS,
) -> Iterator[list[str]]:
    """Yield non-empty tokenized sentences of files, directories or patterns."""
    report = ReadReport() if report is None else report
    lines = read_text_lines(find_files(paths), report, text_field=text_field)
    texts = (line.text for line in lines)
    return tokenize_lines(texts, tokenizer, normalization, report, workers=workers)


def split_lines(
    lines: Iterable[TextLine],
    tokenizer: Tokenizer,
    *,
    normalization: Normalization = DEFAULT_NORMALIZATION,
    report: ReadReport | None = None,
) -> Iterator[tuple[TextLine, list[list[str]]]]:
    """Yield every line with the sentences that `read_sentences` makes of it."""
    pending: deque[TextLine] = deque()  # tokenizers read ahead

    def texts() -> Iterator[str]:
        for line in lines:
            pending.append(line)
            yield line.text

    report = ReadReport() if report is None else report
    of_lines = sentences_of_lines(texts(), tokenizer, normalization, report)
    return ((pending.popleft(), sentences) for sentences in of_lines)
