"""Lines of one corpus file; bad lines are skipped and counted, and an error past a limit."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from elmokit.errors import FormatError
from elmokit.files.lines import CONVERT, BadLine, SkipReason, decode_line
from elmokit.files.sources import AnyFile
from elmokit.files.text_records import CHOOSE, ONE_RECORD_A_LINE, TextRecords

_HARMLESS: tuple[SkipReason, ...] = ("blank", "empty_sentence")
_MAX_BAD_LINES = 100  # beyond this number and share of all lines, reading stops at once
_MAX_BAD_SHARE = 0.01
_MAX_BAD_SHARE_OF_FILE = 0.5  # at the end of each file, however small
_MAX_NOT_UTF8_SHARE_OF_FILE = 0.1


@dataclass
class ReadReport:
    """Counts of what was read and skipped; filled while reading."""

    files: int = 0
    """Files read to their end."""
    lines: int = 0
    """Lines of texts and in records (of JSON lines, Parquet, tables), also blank and bad ones."""
    sentences: int = 0
    words: int = 0
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    """Lines without text, by reason (and sentences in which the tokenizer found no word)."""
    marked_lines: int = 0
    """Lines that hold special words of language models."""

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


class FileReader:
    """Reads one file and counts its bad lines; ``report`` counts over all files.

    ``text_field`` is as for `TextRecords`. Longer lines than ``max_line_bytes`` are skipped.
    """

    def __init__(
        self, path: AnyFile, report: ReadReport, *, text_field: str | None, max_line_bytes: int
    ) -> None:
        self.path, self.report, self.max_line_bytes = path, report, max_line_bytes
        self._records = TextRecords(path, text_field=text_field, max_line_bytes=max_line_bytes)
        self.num_lines = 0
        self.skipped: Counter[SkipReason] = Counter()
        self._first_bad = ""  # line and byte
        self._first_note = ""  # of a record without text

    def lines(self) -> Iterator[str]:
        """Yield the lines with text; raise `FormatError` for damage or too many bad lines."""
        for record in self._records:
            if isinstance(record.text, BadLine):
                self._skip(record.text)
                continue
            for raw in record.text.split(b"\n"):
                text = decode_line(raw if len(raw) <= self.max_line_bytes else None)
                if isinstance(text, BadLine):
                    self._skip(text)
                elif not text or text.isspace():
                    self._skip(BadLine("blank"))
                else:
                    self.num_lines += 1
                    self.report.lines += 1
                    yield text
        self._check_end()

    def _skip(self, line: BadLine) -> None:
        self.num_lines += 1
        self.report.lines += 1
        self.skipped[line.fault] += 1
        self.report.skipped[line.fault] += 1
        if line.fault in _HARMLESS:
            return
        if line.fault == "no_text":
            self._first_note = self._first_note or str(line)
        byte = f", byte {line.position}" if line.fault in ("not_utf8", "nul") else ""
        self._first_bad = self._first_bad or f"line {self.num_lines}{byte}"
        num_bad = self.report.num_bad
        if num_bad > _MAX_BAD_LINES and num_bad > _MAX_BAD_SHARE * self.report.lines:
            raise self._too_bad(f"{num_bad} of the first {self.report.lines} corpus lines")

    def _check_end(self) -> None:
        # a small file may be in another encoding throughout, and lie far below the limit of all
        num_lines = self.num_lines - self.skipped["blank"]
        num_bad = sum(count for why, count in self.skipped.items() if why not in _HARMLESS)
        if (
            num_bad > _MAX_BAD_SHARE_OF_FILE * num_lines
            or self.skipped["not_utf8"] > _MAX_NOT_UTF8_SHARE_OF_FILE * num_lines
        ):
            raise self._too_bad(f"{num_bad} of {num_lines} lines of the file")

    def _too_bad(self, how_many: str) -> FormatError:
        worst = max(set(self.skipped) - {*_HARMLESS}, key=lambda why: self.skipped[why])
        advice = {
            "bad_json": ONE_RECORD_A_LINE,
            "too_long": f"A line may have {self.max_line_bytes} bytes: one sentence or paragraph.",
            "no_text": f"The first without text: {self._first_note} {CHOOSE}",
        }.get(worst, f"{CONVERT}.")
        return FormatError(
            f"{self.path}, {self._first_bad}: the first of too many bad lines: {how_many} "
            f"cannot be read ({describe_skips(self.report.faults)}). {advice}"
        )
