"""Lines and sentences of corpus files: nothing is lost, and what is skipped is counted."""

import gzip
import json
import tracemalloc

import pytest

from elmokit.corpus.readers import ReadReport, read_sentences, read_text_lines
from elmokit.corpus.text_shards import hold_out
from elmokit.errors import FormatError

LINES = ["The bank opened .", "강가의 은행 .", "Last line"]
GOOD = b"good line\n" * 70


class SplitTokenizer:
    name = "split"
    version = ""

    def tokenize(self, sentence):
        return sentence.split()

    def sentences(self, text):
        return [self.tokenize(part) for part in text.split("|")]


@pytest.fixture
def read(write):
    """Write bytes to a file, read them; returns lines and report."""

    def read(content, *, name="corpus.txt", **settings):
        path, report = write(content, name=name), ReadReport()
        return [line.text for line in read_text_lines([path], report, **settings)], report

    return read


def refused(*parts):
    """Expect an error that names parts in this order."""
    return pytest.raises(FormatError, match="(?s)" + ".*".join(parts))


def json_lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


class TestText:
    @pytest.mark.parametrize("ending", ["\n", "\r\n"])
    @pytest.mark.parametrize("last", [True, False])
    def test_lines_come_without_their_end(self, read, ending, last):
        lines, report = read((ending.join(LINES) + ending * last).encode())
        assert lines == LINES
        assert (report.files, report.lines, report.num_bad) == (1, 3, 0)

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("texts.json", '[{"text": "a"}]'),
            ("texts.json", '[\n {"text": "a"}\n]'),
            ("info.json", '{\n "splits": 3\n}\n'),
            ("a.txt", '\n{"text": "one"}\n'),
        ],
    )
    def test_json_is_no_text(self, read, name, content):
        with refused(name, "JSON", r"\.jsonl"):
            read(content.encode(), name=name)


class TestBadLines:
    @pytest.mark.parametrize(
        ("bad", "reason"),
        [
            (b"caf\xe9\n", "not_utf8"),
            (b"a\0b\n", "nul"),
            (b"x" * 101 + b"\n", "too_long"),
            (b"\xed\xa0\x80\n", "not_utf8"),  # a surrogate
        ],
    )
    def test_a_few_are_skipped_and_counted(self, read, caplog, bad, reason):
        lines, report = read(GOOD + bad + b"\n" + GOOD, max_line_bytes=100)
        assert lines == ["good line"] * 140
        assert (report.skipped, report.faults) == ({reason: 1, "blank": 1}, {reason: 1})
        assert report.lines == 142
        assert f"1 of 142 corpus lines were skipped: {reason}: 1" in caplog.text

    def test_a_long_line_is_never_held(self, read):
        content = gzip.compress(b"first\n" * 20 + b"x" * (1 << 25) + b"\nlast\n")
        tracemalloc.start()
        try:
            lines, report = read(content, name="long.txt.gz")
            assert tracemalloc.get_traced_memory()[1] < 1 << 23
        finally:
            tracemalloc.stop()
        assert lines == ["first"] * 20 + ["last"]
        assert report.skipped == {"too_long": 1}

    @pytest.mark.parametrize(
        ("content", "parts"),
        [
            ("강가의 은행 나무\n".encode("cp949") * 3, ("line 1", "iconv", "not_utf8: 3")),
            (GOOD + "a은행\n".encode("cp949") * 9, ("line 71:", "byte 1:", "iconv", "not_utf8: 9")),
            ("강가의 은행\n".encode("cp949") * 10**5, ("line 1", "iconv", "not_utf8: 101")),
            ("one line\nand more\n".encode("UTF-16LE"), ("line 1", "iconv", "nul: 3")),
            (b"text\n" * 5 + b"\x7fELF\x80\0\n" * 20, ("line 6", "nul: 20", " of 25")),
            (b"word " * 300_000, ("1,048,576", "too_long: 1")),
        ],
    )
    def test_too_many_are_an_error_with_place_reason_and_cure(self, read, content, parts):
        with refused(r"corpus\.txt", *parts):
            read(content)


class TestJsonLines:
    def test_the_text_field_is_read(self, read):
        content = json_lines({"text": "one"}, {"id": 3, "text": "둘\n\nthree\r\nfour"})
        lines, report = read(content, name="a.jsonl")
        assert lines == ["one", "둘", "three", "four"]
        assert report.skipped == {"blank": 1}
        renamed = content.replace(b'"text"', b'"body"')
        assert read(renamed, name="a.jsonl", text_field="body")[0] == lines

    def test_bad_records_are_skipped_and_counted(self, read):
        content = json_lines(*[{"text": "good"}] * 70)
        content += b'{"text": \n[1]\n{"text": 3}\n\n{"text": "\\ud800"}\n{"text": "a\\u0000b"}\n'
        lines, report = read(content + b'"\xff"\n' + b"[" * 100_000, name="a.jsonl")
        assert lines == ["good"] * 70
        expected = {"bad_json": 2, "no_text": 2, "not_utf8": 2, "nul": 1, "blank": 1}
        assert report.skipped == expected

    def test_a_wrong_field_name_lists_what_there_is(self, read):
        with refused("'text'", "id, body", "--column", "no_text: 3"):
            read(json_lines(*[{"id": 1, "body": "one"}] * 3), name="a.jsonl")
        with refused("line 1", r"\.jsonl", "bad_json: 70"):
            read(GOOD, name="a.jsonl")


def test_sentences_are_tokenized_and_counted(write, tmp_path):
    path, report = write("one two|three\n\n|four\n"), ReadReport()
    sentences = list(read_sentences(path, SplitTokenizer(), report=report))
    assert sentences == [["one", "two"], ["three"], ["four"]]
    assert (report.lines, report.sentences, report.words) == (3, 3, 4)
    assert report.skipped == {"blank": 1, "empty_sentence": 1}
    with pytest.raises(FileNotFoundError, match=r"/nowhere\.txt"):
        read_sentences(tmp_path / "nowhere.txt", SplitTokenizer())  # before reading


def split(num_sentences, **settings):
    """Numbers of sentences to train on, and of those that are held out."""
    corpus, held = [[str(number)] for number in range(num_sentences)], []

    def collected():
        held.extend((yield from hold_out(corpus, max_words=100_000, **settings)))

    return [int(words[0]) for words in collected()], [int(words[0]) for words in held]


@pytest.mark.parametrize("num_sentences", [0, 1, 5, 6, 11, 84, 999, 5003])
def test_every_sentence_is_on_exactly_one_side(num_sentences):
    train, held = split(num_sentences, share=0.05, max_sentences=60)
    assert sorted(train + held) == list(range(num_sentences))


def test_the_limit_holds_and_blocks_come_from_everywhere():
    _, positions = split(20_000, share=0.1, max_sentences=400)
    assert len(positions) == 400
    assert positions == sorted(positions)  # corpus order
    for tenth in range(10):
        assert any(tenth * 2000 <= position < (tenth + 1) * 2000 for position in positions)
