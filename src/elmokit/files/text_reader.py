"""Lines of one corpus file; bad lines are skipped and counted, and an error past a limit."""

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from elmokit.errors import FormatError
from elmokit.files.lines import BadLine, SkipReason, decode_line
from elmokit.files.sources import AnyFile
from elmokit.files.text_records import TextRecords

log = logging.getLogger(__name__)

_HARMLESS: tuple[SkipReason, ...] = ("blank", "empty_sentence")
_MAX_BAD_LINES = 100  # beyond this number and share of all lines, reading stops at once
_MAX_BAD_SHARE = 0.01
_MAX_BAD_SHARE_OF_FILE = 0.1  # at the end of each file, however small


@dataclass
class ReadReport:
    """Counts of what was read and skipped; filled while reading."""

    files: int = 0
    """Files read to their end."""
    lines: int = 0
    """Lines of texts and in records (of JSON lines, Parquet, tables), also bad ones."""
    sentences: int = 0
    words: int = 0
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    """Lines without text, by reason (and sentences in which the tokenizer found no word)."""

    @property
    def faults(self) -> Counter[SkipReason]:
        """``skipped`` without blank lines and sentences without words."""
        return Counter({why: n for why, n in self.skipped.items() if why not in _HARMLESS})

    @property
    def num_bad(self) -> int:
        """Lines skipped as bad."""
        return self.faults.total()


def describe_skips(skipped: Counter[SkipReason]) -> str:
    """Format counts of skipped lines, largest first."""
    return ", ".join(f"{reason}: {count}" for reason, count in skipped.most_common() if count)


def read_lines(
    path: AnyFile, report: ReadReport, *, text_field: str | None, max_line_bytes: int
) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines with text, and count all lines in ``report``.

    ``text_field`` is as for `TextRecords`. `FormatError` for damage or too many bad lines.
    """
    own = ReadReport()
    first = ""

    def check(is_too_bad: bool) -> None:
        if is_too_bad:
            raise FormatError(
                f"{path}, line {first} It is the first of too many bad lines: "
                f"{describe_skips(report.faults)} of {report.lines:,}."
            )

    for line in _lines(path, text_field, max_line_bytes):
        own.lines += 1
        report.lines += 1
        if isinstance(line, str):
            yield own.lines, line
            continue
        own.skipped[line.fault] += 1
        report.skipped[line.fault] += 1
        if line.fault not in _HARMLESS:
            first = first or f"{own.lines}: {line}"
            check(report.num_bad > max(_MAX_BAD_LINES, _MAX_BAD_SHARE * report.lines))
    report.files += 1
    # a small file may be in another encoding throughout, and lie far below the limit of all
    check(own.num_bad > _MAX_BAD_SHARE_OF_FILE * (own.lines - own.skipped["blank"]))
    if own.skipped.total() == own.lines:
        log.warning("%s holds no text (%s)", path, describe_skips(own.skipped) or "empty file")


def _lines(path: AnyFile, text_field: str | None, max_line_bytes: int) -> Iterator[str | BadLine]:
    for record in TextRecords(path, text_field=text_field, max_line_bytes=max_line_bytes):
        if isinstance(record.text, BadLine):
            yield record.text
            continue
        for raw in record.text.split(b"\n"):
            line = decode_line(raw if len(raw) <= max_line_bytes else None)
            is_blank = isinstance(line, str) and (not line or line.isspace())
            yield BadLine("blank") if is_blank else line
