"""Lines of one corpus file; bad lines are skipped and counted, and an error past a limit."""

import itertools
import json
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError, MissingExtraError
from elmokit.files.damage import damage
from elmokit.files.json_files import is_json
from elmokit.files.lines import (
    CONVERT,
    MAX_LINE_BYTES,
    BadLine,
    SkipReason,
    csv_rows,
    decode_line,
    raw_lines,
)
from elmokit.files.parquet_pages import ParquetPages
from elmokit.files.sources import AnyFile, file_kind, file_size, plain_suffix

_HARMLESS: tuple[SkipReason, ...] = ("blank", "empty_sentence")
_MAX_BAD_LINES = 100  # beyond this number and share of all lines, reading stops at once
_MAX_BAD_SHARE = 0.01
_MAX_BAD_SHARE_OF_FILE = 0.5  # at the end of each file, however small
_MAX_NOT_UTF8_SHARE_OF_FILE = 0.1
_ROWS_TOGETHER, _BATCH_BYTES, _MAX_PAGE_BYTES = 256, 1 << 25, 1 << 27
"""Of Parquet: rows in memory, bytes that repeated texts may make of them, and size of a page, to
which twice that of the file is added: some programs write pages of 100 MB."""
_ONE_RECORD_A_LINE = (
    "Write a record on each line of a file named .jsonl (of a list: jq -c '.[]' IN > OUT.jsonl)."
)
_CHOOSE = "Choose another with --text-field NAME, or rename the one that holds the text to `text`."
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
log = logging.getLogger(__name__)


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

    ``text_field`` is the field of JSON lines, or the column of Parquet and of a table (.csv, .tsv).
    None is ``text``, and of a table the whole rows. Longer lines than ``max_line_bytes`` are
    skipped.
    """

    def __init__(
        self, path: AnyFile, report: ReadReport, *, text_field: str | None, max_line_bytes: int
    ) -> None:
        self.path, self.report, self.max_line_bytes = path, report, max_line_bytes
        self.text_field, self._delimiter = text_field or "text", _DELIMITERS.get(plain_suffix(path))
        if (kind := file_kind(path)) == "text" and self._delimiter and text_field:
            kind = "table"
        # every format gives records: the bytes of one or several lines, or what is wrong
        self._records = {
            "parquet": self._parquet_records, "jsonl": self._json_records,
            "table": self._table_records, "text": self._text_records,
        }[kind]  # fmt: skip
        self.num_lines = 0
        self.skipped: Counter[SkipReason] = Counter()
        self._first_bad = ""  # line and byte
        self._other_fields: list[str] = []  # of the first record without the text field

    def lines(self) -> Iterator[str]:
        """Yield the lines with text; raise `FormatError` for damage or too many bad lines."""
        for record in self._records():
            if isinstance(record, BadLine):
                self._skip(record)
                continue
            for raw in record.split(b"\n"):
                text = decode_line(raw if len(raw) <= self.max_line_bytes else None)
                if isinstance(text, BadLine):
                    self._skip(text)
                elif not text or text.isspace():
                    self._skip(BadLine("blank"))
                else:
                    self._count()
                    yield text
        self._check_end()

    def _text_records(self) -> Iterator[bytes | BadLine]:
        is_first = True
        for raw in raw_lines(self.path, self.max_line_bytes):
            if is_first and raw is not None and raw.strip():
                is_first = False
                self._check_is_text(raw.strip())
            yield BadLine("too_long") if raw is None else raw

    def _check_is_text(self, line: bytes) -> None:
        """Refuse JSON, whose braces and keys would be words."""
        if self._delimiter is not None and self._delimiter.encode() in line:
            log.warning(
                "%s is read as plain text, in whole rows. --text-field NAME (or a number from 1) "
                "reads one of its columns", self.path,
            )  # fmt: skip
        is_json_file = plain_suffix(self.path) == ".json" and line[:1] in b"{["
        if is_json_file or (line[:1] == b"{" and is_json(line, dict)):
            raise FormatError(f"{self.path}: JSON, not text. {_ONE_RECORD_A_LINE}")

    def _table_records(self) -> Iterator[bytes | BadLine]:
        """Yield the fields of a column, by its name in the first row or its number."""
        lines = self._readable_lines()
        if self._delimiter == "\t":  # where quotes have no meaning
            rows = (line.split("\t") if line else [] for line in lines)
        else:
            rows = (row for _, row in csv_rows(self.path, lines))
        if (first := next(filter(None, rows), None)) is None:
            return  # without rows, as an empty file
        is_number = self.text_field.isdecimal()
        names = [str(i) if is_number else name.strip() for i, name in enumerate(first, 1)]
        self._check_has(names)
        column = names.index(self.text_field)
        for row in itertools.chain([first] if is_number else [], rows):
            if len(row) > column:
                yield row[column].encode()
            else:
                yield BadLine("no_text" if row else "blank")

    def _readable_lines(self) -> Iterator[str]:
        for raw in raw_lines(self.path, self.max_line_bytes):
            text = decode_line(raw)
            if isinstance(text, BadLine):
                self._skip(text)
            else:
                yield text

    def _json_records(self) -> Iterator[bytes | BadLine]:
        # a record may hold a whole book: the limit is that of the lines of its text
        for raw in raw_lines(self.path, max(MAX_LINE_BYTES, self.max_line_bytes)):
            line = decode_line(raw)
            if isinstance(line, BadLine) or not line.strip():
                yield line if isinstance(line, BadLine) else BadLine("blank")
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                yield BadLine("bad_json")
                continue
            fields = record if isinstance(record, dict) else {}
            if isinstance(text := fields.get(self.text_field), str):
                # an escaped lone surrogate passes through and then fails as UTF-8
                yield text.encode("utf-8", "surrogatepass")
            else:
                self._other_fields = self._other_fields or [*fields]
                yield BadLine("no_text")

    def _parquet_records(self) -> Iterator[bytes | BadLine]:
        try:
            import pyarrow as arrow
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise MissingExtraError("pyarrow", extra="arrow") from error
        self.path.open("rb").close()  # unlike pyarrow's, this system error names the path
        with ExitStack() as stack:
            stack.enter_context(
                damage(self.path, self._parquet_advice, what="damaged Parquet file")
            )
            source: Any = self.path
            if not isinstance(source, Path):  # pyarrow closes only what it opened itself
                source = stack.enter_context(source.open("rb"))
            opened = parquet.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False)
            file = stack.enter_context(opened)
            schema = file.schema_arrow
            self._check_has(list(schema.names))
            stored = schema.field(self.text_field).type
            kind = str(getattr(stored, "value_type", stored))  # that of a dictionary
            if kind not in ("string", "large_string", "string_view"):
                raise FormatError(
                    f"{self.path}: column {self.text_field!r} must hold strings, got {kind}."
                )
            for batch in self._parquet_batches(file):
                column = batch.column(0)
                if not arrow.types.is_dictionary(column.type):  # whose values may recur
                    column = column.cast(arrow.large_binary())
                for value in column:
                    text = value.as_py()
                    yield (
                        BadLine("no_text") if text is None
                        else text.encode() if isinstance(text, str) else text
                    )  # fmt: skip

    def _parquet_advice(self) -> str:
        return f"Rows before it: {self.num_lines}. Copy or write the file again."

    def _parquet_batches(self, file: Any) -> Iterator[Any]:
        """Yield few rows at a time, fewer where a dictionary or prefix may repeat a long text."""
        paths = [file.schema.column(number).path for number in range(len(file.schema))]
        column, pages = paths.index(self.text_field), ParquetPages(self.path)
        max_page_bytes = 2 * (file_size(self.path) or 0) + _MAX_PAGE_BYTES
        for group in range(file.num_row_groups):
            headers = pages.pages(group, column)
            if not isinstance(self.path, Path):  # for the others, all would be fetched twice
                headers = itertools.islice(headers, 1)
            longest = 1
            for page in headers:
                if page.num_bytes > max_page_bytes:
                    raise ValueError(f"a page states {page.num_bytes:,} bytes")
                longest = max(longest, page.num_bytes if page.names_again else 1)
            num_rows = max(1, min(_ROWS_TOGETHER, _BATCH_BYTES // longest))
            yield from file.iter_batches(num_rows, row_groups=[group], columns=[self.text_field])

    def _check_has(self, columns: list[str]) -> None:
        if self.text_field not in columns:
            raise FormatError(
                f"{self.path}: no column {self.text_field!r}, where the text must be; it has: "
                f"{', '.join(columns[:20])}. {_CHOOSE}"
            )

    def _count(self) -> None:
        self.num_lines += 1
        self.report.lines += 1

    def _skip(self, line: BadLine) -> None:
        self._count()
        self.skipped[line.fault] += 1
        self.report.skipped[line.fault] += 1
        if line.fault in _HARMLESS:
            return
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
        fields = ", ".join(self._other_fields[:20]) or "no fields"
        advice = {
            "bad_json": _ONE_RECORD_A_LINE,
            "too_long": f"A line may have {self.max_line_bytes} bytes: one sentence or paragraph.",
            "no_text": (
                f"Each record needs a string in the field {self.text_field!r}; the first without "
                f"it has: {fields}. {_CHOOSE}"
            ),
        }.get(worst, f"{CONVERT}.")
        return FormatError(
            f"{self.path}, {self._first_bad}: the first of too many bad lines: {how_many} "
            f"cannot be read ({describe_skips(self.report.faults)}). {advice}"
        )
