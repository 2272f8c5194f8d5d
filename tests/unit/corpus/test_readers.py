import gzip
import json
import logging
import unicodedata

import pytest

LINES = ["The bank opened .", "강가의 은행 .", "Last line"]


class SplitTokenizer:
    name = "split"
    version = ""

    def tokenize(self, sentence):
        return sentence.split()

    def sentences(self, text):
        return [self.tokenize(part) for part in text.split("|")]


@pytest.fixture
def read(tmp_path):
    """Write bytes to a file, read them; returns lines and report."""
    from elmokit.corpus.readers import ReadReport, read_text_lines

    def read(data, *, name="corpus.txt", **settings):
        path = tmp_path / name
        path.write_bytes(data)
        report = ReadReport()
        return [line.text for line in read_text_lines([path], report, **settings)], report

    return read


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_lines_come_without_their_end(read, ending, last):
    lines, report = read((ending.join(LINES) + ending * last).encode())
    assert lines == LINES
    assert (report.files, report.lines, report.num_bad) == (1, 3, 0)


def test_only_line_feeds_end_lines(read):
    text = "a\u2028b\x0bc\x85d\x1ce"
    assert read(text.encode())[0] == [text]


def test_blank_lines_are_skipped_and_counted(read):
    lines, report = read(b"\na\n \t \n\r\n\xe3\x80\x80\nb\n")
    assert lines == ["a", "b"]
    assert report.skipped == {"blank": 4}
    assert report.num_bad == 0


def test_byte_order_mark_is_stripped(read):
    assert read("\ufeff첫 줄\nb\ufeff\n".encode())[0] == ["첫 줄", "b\ufeff"]


def test_several_files_are_read_in_order(tmp_path):
    from elmokit.corpus.readers import ReadReport, read_text_lines

    (tmp_path / "b.txt").write_bytes(b"third")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"first\nsecond\n"))
    report = ReadReport()
    files = [tmp_path / "a.txt.gz", tmp_path / "b.txt"]
    assert [line.text for line in read_text_lines(files, report)] == ["first", "second", "third"]
    assert report.files == 2


def test_a_missing_file_is_an_error_before_reading(tmp_path):
    from elmokit.corpus.readers import read_sentences

    with pytest.raises(FileNotFoundError, match=r"/nowhere\.txt.*\*\.txt\.gz"):
        read_sentences(tmp_path / "nowhere.txt", SplitTokenizer())


GOOD = b"good line\n" * 50


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"caf\xe9\n", "not_utf8"),
        (b"a\0b\n", "nul"),
        (b"x" * 101 + b"\n", "too_long"),
        (b"\xed\xa0\x80\n", "not_utf8"),  # a surrogate
    ],
)
def test_a_few_bad_lines_are_skipped_and_counted(read, caplog, bad, reason):
    with caplog.at_level(logging.WARNING):
        lines, report = read(GOOD + bad + GOOD, max_line_bytes=100)
    assert lines == ["good line"] * 100
    assert report.skipped == {reason: 1}
    assert report.lines == 101
    assert f"1 of 101 corpus lines were skipped: {reason}: 1" in caplog.text


def test_the_lines_that_are_said_to_be_skipped_add_up(read, caplog):
    with caplog.at_level(logging.WARNING):
        _, report = read(GOOD + b"\n\n\n\na\0b\n" + GOOD)
    assert report.skipped == {"blank": 4, "nul": 1}
    assert report.faults == {"nul": 1}
    assert caplog.messages == ["1 of 105 corpus lines were skipped: nul: 1"]


@pytest.mark.parametrize("ending", [b"\n", b""])
@pytest.mark.parametrize("size", [100, 101, 1 << 19])
def test_the_line_limit_is_exact_and_the_next_line_is_whole(read, size, ending):
    lines, report = read(
        GOOD + b"x" * size + ending + b"\nnext\n" * bool(ending), max_line_bytes=100
    )
    assert lines == ["good line"] * 50 + ["x" * 100] * (size == 100) + ["next"] * bool(ending)
    assert report.skipped["too_long"] == (size > 100)


def test_a_long_line_is_never_held(tmp_path):
    import tracemalloc

    from elmokit.corpus.readers import ReadReport, read_text_lines

    path = tmp_path / "long.txt.gz"
    path.write_bytes(gzip.compress(b"first\nsecond\n" + bytes(b"x" * (1 << 25)) + b"\nlast\n"))
    report = ReadReport()
    tracemalloc.start()
    try:
        texts = [line.text for line in read_text_lines([path], report)]
        assert texts == ["first", "second", "last"]
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()
    assert report.skipped == {"too_long": 1}


def test_korean_in_another_encoding_stops_with_the_command_that_mends_it(read):
    from elmokit.errors import FormatError

    data = "강가의 은행 나무\n".encode("cp949") * 3
    with pytest.raises(
        FormatError, match=r"corpus\.txt, line 1: .*not_utf8: 3.*iconv -f CP949 -t UTF-8"
    ):
        read(data)


def test_reading_stops_early_past_the_limit(read):
    from elmokit.errors import FormatError

    with pytest.raises(FormatError, match=r"line 1: .* 101 .*not_utf8: 101"):
        read("강가의 은행 나무\n".encode("cp949") * 100_000)


def test_more_bad_lines_than_the_limit_are_fine_below_the_share(read):
    lines, report = read((b"good\n" * 200 + b"b\xff\n") * 150)
    assert len(lines) == 200 * 150
    assert report.num_bad == 150


@pytest.mark.parametrize(
    ("order", "text", "count"),
    [
        ("LE", "one line\nand another\n", 3),
        ("BE", "one line\nand another\n", 2),
        ("LE", "\nhalf a line feed is left here\n", 2),
    ],
)
def test_utf_16_without_mark_is_recognized(read, order, text, count):
    from elmokit.errors import FormatError

    with pytest.raises(FormatError, match=rf"nul: {count}.*iconv -f UTF-16{order} -t UTF-8"):
        read(text.encode(f"UTF-16{order}"))


def test_a_binary_file_is_an_error(read):
    from elmokit.errors import FormatError

    with pytest.raises(FormatError, match=r"line 6: .* 20 .* 30 .*nul: 20.*UTF-8"):
        read(b"text\n" * 5 + b"\x7fELF\x80\x81\0\x90\n" * 20 + b"text\n" * 5)


def test_lines_of_megabytes_only_are_an_error(read):
    from elmokit.errors import FormatError

    with pytest.raises(FormatError, match=r"too_long: 1.*1048576 "):
        read(b"word " * 300_000)


def test_a_json_record_may_be_a_book_of_short_lines(tmp_path):
    from elmokit.corpus.readers import ReadReport, read_text_lines

    book = "\n".join(["a line of a book"] * 100)
    path, report = tmp_path / "books.jsonl", ReadReport()
    path.write_text(json.dumps({"text": book}) + "\n" + json.dumps({"text": "x" * 101}) + "\n")
    lines = list(read_text_lines([path], report, max_line_bytes=100))
    assert len(lines) == 100
    assert report.skipped == {"too_long": 1}


def test_a_json_array_is_no_text(tmp_path):
    from elmokit.corpus.readers import ReadReport, read_text_lines
    from elmokit.errors import FormatError

    path = tmp_path / "texts.json"
    for text in ('[{"text": "a"}]', '[\n {"text": "a"}\n]'):
        path.write_text(text)
        with pytest.raises(FormatError, match=r"texts\.json: .*JSON.*\.jsonl"):
            list(read_text_lines([path], ReadReport()))
    text = tmp_path / "notes.txt"
    text.write_text("[1]\n[\n")
    assert [line.text for line in read_text_lines([text], ReadReport())] == ["[1]", "["]


@pytest.mark.parametrize("text", ['{\n "splits": 3\n}\n', '{"splits":\n 3}\n', '{"splits": 3}\n'])
def test_a_json_object_is_no_text(tmp_path, text):
    from elmokit.corpus.readers import ReadReport, read_text_lines
    from elmokit.errors import FormatError

    path = tmp_path / "dataset_info.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"dataset_info\.json: .*JSON.*\.jsonl"):
        list(read_text_lines([path], ReadReport()))


@pytest.mark.parametrize("data", [b"", b"\n\n \n"])
def test_an_entirely_empty_corpus_is_an_error(read, data):
    from elmokit.errors import FormatError

    with pytest.raises(FormatError, match=r"corpus\.txt: .* 1 file .*UTF-8"):
        read(data)


def test_an_empty_file_among_others_is_only_reported(tmp_path, caplog):
    from elmokit.corpus.readers import ReadReport, read_text_lines

    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    files[0].touch()
    files[1].write_bytes(b"text\n")
    with caplog.at_level(logging.WARNING):
        assert [line.text for line in read_text_lines(files, ReadReport())] == ["text"]
    assert "a.txt holds no text (empty file)" in caplog.text


def json_lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def test_json_lines_give_the_text_field(read):
    data = json_lines({"text": "one"}, {"id": 3, "text": "둘\n\nthree\r\nfour"})
    lines, report = read(data, name="a.jsonl")
    assert lines == ["one", "둘", "three", "four"]
    assert report.skipped == {"blank": 1}
    assert read(data.replace(b'"text"', b'"body"'), name="a.jsonl", text_field="body")[0] == lines


def test_bad_records_are_skipped_and_counted(read):
    data = json_lines(*[{"text": "good"}] * 50)
    data += b'{"text": \n[1]\n{"text": 3}\n\n{"text": "\\ud800"}\n{"text": "a\\u0000b"}\n"\xff"\n'
    lines, report = read(data, name="a.jsonl")
    assert lines == ["good"] * 50
    expected = {"bad_json": 1, "no_text": 2, "not_utf8": 2, "nul": 1, "blank": 1}
    assert report.skipped == expected


def test_deeply_nested_json_is_a_bad_record(read):
    lines, report = read(json_lines({"text": "good"}) * 2 + b"[" * 100_000, name="a.jsonl")
    assert lines == ["good"] * 2
    assert report.skipped == {"bad_json": 1}


def test_a_wrong_field_name_lists_what_there_is(read):
    from elmokit.errors import FormatError

    message = r"no_text: 3.*'text'.*: id, body\. .*--text-field"
    with pytest.raises(FormatError, match=message):
        read(json_lines(*[{"id": 1, "body": "one"}] * 3), name="a.jsonl")


def test_text_named_jsonl_is_an_error(read):
    from elmokit.errors import FormatError

    with pytest.raises(FormatError, match=r"line 1: .*bad_json: 50.*\.jsonl"):
        read(GOOD, name="a.jsonl")


@pytest.fixture
def write_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def write(columns, *, types=None):
        path = tmp_path / "a.parquet"
        arrays = {k: arrow.array(v, type=(types or {}).get(k)) for k, v in columns.items()}
        parquet.write_table(arrow.table(arrays), path, row_group_size=700)
        return path

    return write


TABLES = {
    "a.csv": 'id,body\n1,"Good, ""cheap""\nand fast"\n\n2,둘\n3\n',
    "a.csv.gz": 'id,body\r\n1,"Good, ""cheap""\r\nand fast"\r\n2,둘\r\n3\r\n',
    "a.tsv": 'id\tbody\n1\tGood, "cheap"\n2\tand fast\n3\t둘\n4\n',
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("by", ["name", "number"])
def test_tables_give_the_column_that_is_asked_for(read, name, by):
    table = TABLES[name] if by == "name" else TABLES[name].partition("\n")[2]
    data = table.encode()
    data = gzip.compress(data) if name.endswith(".gz") else data
    lines, report = read(data, name=name, text_field="body" if by == "name" else "2")
    assert lines == ['Good, "cheap"', "and fast", "둘"]
    assert report.skipped["no_text"] == 1


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("field", ["text", "3", "0"])
def test_a_column_that_is_not_there_lists_what_there_is(read, name, field):
    from elmokit.errors import FormatError

    with pytest.raises(FormatError) as caught:
        read(TABLES[name].encode(), name=name, text_field=field)
    for part in (name, repr(field), "id, body" if field == "text" else "1, 2", "--text-field"):
        assert part in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\n\n"])
def test_an_empty_table_among_others_is_passed_over(tmp_path, data, caplog):
    from elmokit.corpus import readers

    (tmp_path / "a.csv").write_bytes(data)
    (tmp_path / "b.csv").write_text("\nid,body\n1,one\n")
    files, report = [tmp_path / "a.csv", tmp_path / "b.csv"], readers.ReadReport()
    lines = [line.text for line in readers.read_text_lines(files, report, text_field="body")]
    assert lines == ["one"]
    assert "a.csv holds no text" in caplog.text


def test_a_table_without_a_column_to_read_is_text_and_told(read, caplog):
    lines, _ = read(TABLES["a.tsv"].encode(), name="a.tsv")
    assert lines == TABLES["a.tsv"].splitlines()
    (record,) = caplog.records
    assert "a.tsv" in record.getMessage()
    assert "--text-field" in record.getMessage()


def test_an_open_quotation_mark_is_an_error(read):
    from elmokit.errors import FormatError

    with pytest.raises(FormatError, match=r"a\.csv.*Quote"):
        read(b'id,body\n1,"one\n2,two\n', name="a.csv", text_field="body")


def test_dictionaries_of_parquet_are_read_a_value_at_a_time(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    from elmokit.corpus.readers import ReadReport, read_text_lines

    texts = ["one", "둘\nthree", "one", None]
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"body": arrow.array(texts).dictionary_encode()}), path)
    lines = read_text_lines([path], report := ReadReport(), text_field="body")
    assert [line.text for line in lines] == ["one", "둘", "three", "one"]
    assert report.skipped == {"no_text": 1}
    parquet.write_table(arrow.table({"body": arrow.array([1, 1]).dictionary_encode()}), path)
    with pytest.raises(ValueError, match=r"'body'.* int64"):
        list(read_text_lines([path], ReadReport(), text_field="body"))


@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_parquet_gives_the_text_column(write_parquet, kind):
    import pyarrow as arrow

    from elmokit.corpus.readers import ReadReport, read_text_lines

    texts = [f"줄 {i}" for i in range(2000)]
    columns = {"id": list(range(2002)), "text": [*texts, None, "a\nb"]}
    report = ReadReport()
    path = write_parquet(columns, types={"text": getattr(arrow, kind)()})
    assert [line.text for line in read_text_lines([path], report)] == [*texts, "a", "b"]
    assert report.lines == 2003
    assert report.skipped == {"no_text": 1}


def test_parquet_without_the_column_lists_what_there_is(write_parquet):
    from elmokit.corpus.readers import ReadReport, read_text_lines
    from elmokit.errors import FormatError

    path = write_parquet({"id": [1], "body": ["one"]})
    with pytest.raises(FormatError, match=r"'text'.*: id, body"):
        [line.text for line in read_text_lines([path], ReadReport())]
    with pytest.raises(FormatError, match=r"'id'.* int64"):
        [line.text for line in read_text_lines([path], ReadReport(), text_field="id")]


def test_a_damaged_parquet_file_is_an_error(write_parquet):
    from elmokit.corpus.readers import ReadReport, read_text_lines
    from elmokit.errors import FormatError

    path = write_parquet({"text": [f"line {i}" for i in range(5000)]})
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatError, match=r"a\.parquet: .* row 0: .*[^.]\. Copy "):
        [line.text for line in read_text_lines([path], ReadReport())]
    path.write_bytes(data[:4] + bytes(len(data) // 2) + data[4 + len(data) // 2 :])
    with pytest.raises(FormatError, match=r"(?s)a\.parquet: .* row \d+: "):
        [line.text for line in read_text_lines([path], ReadReport())]


def test_parquet_without_its_package_names_the_extra(write_parquet, monkeypatch):
    import sys

    from elmokit.corpus.readers import ReadReport, read_text_lines
    from elmokit.errors import MissingExtraError

    path = write_parquet({"text": ["one"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pyarrow.*\[arrow\]"):
        [line.text for line in read_text_lines([path], ReadReport())]


def test_sentences_are_tokenized_and_counted(tmp_path):
    from elmokit.corpus.readers import ReadReport, read_sentences

    path = tmp_path / "a.txt"
    path.write_text("one two|three\n\n|four\n", encoding="utf-8")
    report = ReadReport()
    sentences = list(read_sentences(path, SplitTokenizer(), report=report))
    assert sentences == [["one", "two"], ["three"], ["four"]]
    assert (report.lines, report.sentences, report.words) == (3, 3, 4)
    assert report.skipped == {"blank": 1, "empty_sentence": 1}


@pytest.mark.parametrize("form", ["NFC", "none"])
def test_the_tokenizer_sees_normalized_text(tmp_path, form):
    from elmokit.corpus.readers import read_sentences

    decomposed = unicodedata.normalize("NFD", "한국 café")
    path = tmp_path / "a.txt"
    path.write_text(decomposed, encoding="utf-8")
    words = next(read_sentences(path, SplitTokenizer(), normalization=form))
    assert words == (["한국", "café"] if form == "NFC" else decomposed.split())


def test_a_batch_method_is_used_and_fed_lazily(tmp_path):
    from elmokit.corpus.readers import ReadReport, read_sentences

    class BatchTokenizer(SplitTokenizer):
        def sentences(self, text):
            raise AssertionError("the batch method is faster")

        def sentences_batch(self, texts):
            for text in texts:
                yield [text.split(), [text]]

    path = tmp_path / "a.txt"
    path.write_text("a b\nc\nd\n", encoding="utf-8")
    report = ReadReport()
    sentences = read_sentences([path], BatchTokenizer(), report=report)
    assert next(sentences) == ["a", "b"]
    assert report.lines == 1
    assert list(sentences) == [["a b"], ["c"], ["c"], ["d"], ["d"]]


def test_the_whitespace_tokenizer_keeps_tokenized_text(tmp_path):
    from elmokit.corpus.readers import read_sentences
    from elmokit.text.tokenizers.registry import build_tokenizer

    path = tmp_path / "a.txt"
    path.write_text("\n".join(LINES), encoding="utf-8")
    expected = [line.split() for line in LINES]
    assert list(read_sentences(path, build_tokenizer("whitespace"))) == expected


def test_json_lines_under_the_name_of_a_text_are_an_error(read):
    from elmokit.errors import FormatError

    with pytest.raises(FormatError, match=r"a\.json: .*\.jsonl"):
        read(b"\n" + json_lines({"text": "one"}), name="a.json")
    texts, _ = read(b"{curly} words {}\n", name="a.txt")
    assert texts == ["{curly} words {}"]
