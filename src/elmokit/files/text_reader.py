"""Lines of one corpus file; bad lines are skipped and counted, and an error past a limit."""

import itertools
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from elmokit.errors import FormatError, MissingExtraError
from elmokit.files.bounded import check_growth
from elmokit.files.damage import damage
from elmokit.files.json_files import is_json
from elmokit.files.lines import (
    CONVERT,
    MAX_LINE_BYTES,
    BadLine,
    csv_rows,
    decode_line,
    raw_lines,
)
from elmokit.files.parquet_pages import ParquetPages
from elmokit.files.remote import AnyFile
from elmokit.files.sources import file_kind, file_size, plain_suffix

SkipReason = Literal[
    "blank", "not_utf8", "nul", "too_long", "bad_json", "no_text", "empty_sentence"
]

_HARMLESS: tuple[SkipReason, ...] = ("blank", "empty_sentence")
_MAX_BAD_LINES = 100  # beyond this number and share of all lines, reading stops at once
_MAX_BAD_SHARE = 0.01
_MAX_BAD_SHARE_OF_FILE = 0.5  # at the end of each file, however small
_MAX_NOT_UTF8_SHARE_OF_FILE = 0.1
_ROWS_TOGETHER, _PAGE_BYTES = 256, 1 << 25
"""Of Parquet: rows in memory, and bytes that pages may make of them."""
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
    """Lines, or records of JSON lines and Parquet, including blank and bad ones."""
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
        self.path, self.report = path, report
        self.text_field, self.max_line_bytes = text_field or "text", max_line_bytes
        self._kind, self._delimiter = file_kind(path), _DELIMITERS.get(plain_suffix(path))
        self._has_named_column = text_field is not None and self._delimiter is not None
        # a record may hold a whole book: the limit is that of the lines of its text
        self._max_record_bytes = max(MAX_LINE_BYTES, max_line_bytes)
        self.num_lines = 0
        self.skipped: Counter[SkipReason] = Counter()
        self._first_bad = ""  # line, and for some byte
        self._other_fields: list[str] = []  # of the first record without the text field

    def lines(self) -> Iterator[str]:
        """Yield the lines with text; raise `FormatError` for damage or too many bad lines."""
        if self._kind == "parquet":
            texts = self._readable(self._lines_of(self._parquet_values()))
        elif self._kind == "jsonl":
            texts = self._readable(self._lines_of(self._json_values()))
        elif self._has_named_column:
            texts = self._column_lines()
        else:
            texts = self._readable(self._text_lines())
        for text in texts:
            if not text or text.isspace():
                self._skip("blank")
            else:
                yield text
        self._check_end()

    def _counted_lines(self, max_bytes: int) -> Iterator[bytes | None]:
        for raw in raw_lines(self.path, max_bytes):
            self._count()
            yield raw

    def _readable(self, lines: Iterable[bytes | None]) -> Iterator[str]:
        for raw in lines:
            text = decode_line(raw)
            if isinstance(text, BadLine):
                self._skip(text.fault, f", byte {text.position}" if text.position else "")
            else:
                yield text

    def _text_lines(self) -> Iterator[bytes | None]:
        """Yield the lines of a text; refuse JSON lines, whose braces and keys would be words."""
        is_first = True
        for raw in self._counted_lines(self.max_line_bytes):
            if is_first and raw is not None and raw.strip():
                is_first = False
                if self._delimiter is not None and self._delimiter.encode() in raw:
                    log.warning(
                        "%s is read as plain text, in whole rows. --text-field NAME (or a number "
                        "from 1) reads one of its columns", self.path,
                    )  # fmt: skip
                begin = raw.lstrip()[:1]
                is_json_file = plain_suffix(self.path) == ".json" and begin in (b"{", b"[")
                if is_json_file or (begin == b"{" and is_json(raw, dict)):
                    raise FormatError(f"{self.path}: JSON, not text. {_ONE_RECORD_A_LINE}")
            yield raw

    def _column_lines(self) -> Iterator[str]:
        """Yield the lines in one column of a table, by its name in the first row or its number."""
        lines = self._readable(self._counted_lines(self.max_line_bytes))
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
                yield from row[column].split("\n")
            else:
                self._skip("no_text" if row else "blank")

    def _lines_of(self, values: Iterable[bytes]) -> Iterator[bytes | None]:
        for value in values:
            for index, line in enumerate(value.split(b"\n")):
                if index:  # the record itself was counted
                    self._count()
                yield line if len(line) <= self.max_line_bytes else None

    def _json_values(self) -> Iterator[bytes]:
        for raw in self._counted_lines(self._max_record_bytes):
            if raw is None or not raw.strip():
                self._skip("too_long" if raw is None else "blank")
                continue
            try:
                record = json.loads(raw.decode("utf-8"))
            except UnicodeDecodeError as error:
                self._skip("not_utf8", f", byte {error.start}")
            except (ValueError, RecursionError):
                self._skip("bad_json")
            else:
                fields = record if isinstance(record, dict) else {}
                if isinstance(text := fields.get(self.text_field), str):
                    # an escaped lone surrogate passes through and then fails as UTF-8
                    yield text.encode("utf-8", "surrogatepass")
                else:
                    self._other_fields = self._other_fields or [*fields]
                    self._skip("no_text")

    def _parquet_values(self) -> Iterator[bytes]:
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
            self._check_column(file.schema_arrow)
            for batch in self._parquet_batches(file):
                column = batch.column(0)
                if not arrow.types.is_dictionary(column.type):  # whose values may recur
                    column = column.cast(arrow.large_binary())
                for value in column:
                    self._count()
                    text = value.as_py()
                    if text is None:
                        self._skip("no_text")
                    else:
                        yield text.encode() if isinstance(text, str) else text

    def _parquet_advice(self) -> str:
        return f"Rows before it: {self.num_lines}. Copy or write the file again."

    def _parquet_batches(self, file: Any) -> Iterator[Any]:
        """Yield few rows at a time, fewer where a dictionary or prefix may repeat a long text."""
        paths = [file.schema.column(number).path for number in range(len(file.schema))]
        column, pages = paths.index(self.text_field), ParquetPages(self.path)
        for group in range(file.num_row_groups):
            headers = pages.pages(group, column)
            if not isinstance(self.path, Path):  # for the others, all would be fetched twice
                headers = itertools.islice(headers, 1)
            longest = 1
            for page in headers:
                check_growth(self.path, page.num_bytes, file_size(self.path) or _PAGE_BYTES)
                longest = max(longest, page.num_bytes if page.names_again else 1)
            num_rows = max(1, min(_ROWS_TOGETHER, _PAGE_BYTES // longest))
            yield from file.iter_batches(num_rows, row_groups=[group], columns=[self.text_field])

    def _check_column(self, schema: Any) -> None:
        self._check_has(list(schema.names))
        stored = schema.field(self.text_field).type
        kind = str(getattr(stored, "value_type", stored))  # that of a dictionary
        if kind not in ("string", "large_string", "string_view"):
            raise FormatError(
                f"{self.path}: column {self.text_field!r} must hold strings, got {kind}."
            )

    def _check_has(self, columns: list[str]) -> None:
        if self.text_field not in columns:
            raise FormatError(
                f"{self.path}: no column {self.text_field!r}, where the text must be; it has: "
                f"{', '.join(columns[:20])}. {_CHOOSE}"
            )

    def _count(self) -> None:
        self.num_lines += 1
        self.report.lines += 1

    def _skip(self, reason: SkipReason, where: str = "") -> None:
        self.skipped[reason] += 1
        self.report.skipped[reason] += 1
        if reason in _HARMLESS:
            return
        self._first_bad = self._first_bad or f"line {self.num_lines}{where}"
        num_bad = self.report.num_bad
        if num_bad > _MAX_BAD_LINES and num_bad > _MAX_BAD_SHARE * self.report.lines:
            raise self._too_bad(f"{num_bad} of the first {self.report.lines} corpus lines")

    def _check_end(self) -> None:
        num_lines = self.num_lines - self.skipped["blank"]
        num_bad = sum(self.skipped[why] for why in self.skipped if why not in _HARMLESS)
        if (
            num_bad > _MAX_BAD_SHARE_OF_FILE * num_lines
            or self.skipped["not_utf8"] > _MAX_NOT_UTF8_SHARE_OF_FILE * num_lines
        ):
            raise self._too_bad(f"{num_bad} of {num_lines} lines of the file")

    def _too_bad(self, how_many: str) -> FormatError:
        worst = max(set(self.skipped) - {*_HARMLESS}, key=lambda why: self.skipped[why])
        return FormatError(
            f"{self.path}, {self._first_bad}: the first of too many bad lines: {how_many} "
            f"cannot be read ({describe_skips(self.report.faults)}). {self._advice(worst)}"
        )

    def _advice(self, worst: SkipReason) -> str:
        if worst == "bad_json" or plain_suffix(self.path) == ".json":
            return _ONE_RECORD_A_LINE
        if worst == "too_long":
            of_records = f"; records at most {self._max_record_bytes}"
            return (
                f"Lines may have at most {self.max_line_bytes} bytes"
                f"{of_records if self._kind == 'jsonl' else ''}. Put one sentence or paragraph on "
                "each line."
            )
        if worst == "no_text":
            fields = ", ".join(self._other_fields[:20]) or "no fields"
            return (
                f"Each record needs a string in the field {self.text_field!r}; the first without "
                f"it has: {fields}. {_CHOOSE}"
            )
        if worst == "nul":
            return f"It is a binary file, or UTF-16. {CONVERT} (ENCODING is UTF-16LE or UTF-16BE)."
        return f"{CONVERT}."
