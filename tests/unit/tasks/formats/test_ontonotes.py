"""Documents with coreference."""

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats.ontonotes import read_coreference


def document(*sentences, name="GUM_news_river", part="000", end="#end document\n"):
    """Write sentences of ``word mark [speaker]`` as a document."""
    lines = [f"#begin document ({name}); part {part}\n"]
    for sentence in sentences:
        for number, word in enumerate(sentence):
            text, mark, speaker = (*word.split(" "), "-")[:3]
            lines.append(f"{name}\t0\t{number}\t{text}" + "\t-" * 5 + f"\t{speaker}\t-\t{mark}\n")
        lines.append("\n")
    return "".join(lines) + end


@pytest.fixture
def read(write):
    return lambda content: list(read_coreference(write(content)))


def test_mentions_count_in_tokens_of_the_document(read):
    # tokens:      0        1         2         3       4         5        6
    content = document(
        ["Mina (4", "Kim 4)", "sings _"], ["Her (7|(4)", "sister 7)", "hears -", "her (4)"]
    )
    (only,) = read(content)
    assert only.sentences == (("Mina", "Kim", "sings"), ("Her", "sister", "hears", "her"))
    assert only.clusters == (((0, 2), (3, 4), (6, 7)), ((3, 5),))
    assert only.tokens[3:5] == ("Her", "sister")
    assert (only.name, only.part, only.genre) == ("GUM_news_river", 0, "news")
    assert only.speakers is None


@pytest.mark.parametrize(
    ("words", "clusters"),
    [
        (["a (1", "b (1|1)", "c 1)"], (((0, 3), (1, 2)),)),  # the inner one closes first
        (["a (1", "b (2", "c 1)", "d 2)", "e (1)|(2)"],  # they cross, and share a span
         (((0, 3), (4, 5)), ((1, 4), (4, 5)))),
    ],
)  # fmt: skip
def test_mentions_may_nest_and_cross(read, words, clusters):
    assert read(document(words))[0].clusters == clusters


def test_speakers_and_genres(read):
    (only,) = read(document(["네 - 미나", "왜 -"], name="bc/cctv/00/cctv_0001", part="002"))
    assert only.speakers == ("미나", None)
    assert (only.genre, only.part, only.clusters) == ("bc", 2, ())


def test_columns_may_be_separated_by_spaces_and_the_last_one_may_be_empty(read):
    content = (
        "#begin document (nw/a); part 000\nnw/a 0  0   Rain NN * - - - - * (ARG0*) (3)\n"
        "\n\nnw/a 0 0 It PRP * - - - - * (3)\n\n#end document\n"
        "#begin document (77_a); part 0\n77_a\t0\t0\tRain\t_\t_\t_\t_\t_\t_\t_\t\n#end document\n"
    )
    spaces, empty = read(content)
    assert spaces.clusters == (((0, 1), (1, 2)),)
    assert (empty.clusters, empty.genre, empty.speakers) == ((), None, None)


def test_an_empty_document_is_skipped(read, caplog):
    assert len(read(document() + document(["a (1)"]) * 19)) == 19
    assert "empty_document: 1" in caplog.text
    with pytest.raises(FormatError, match=r"data\.txt: 1 of 2 .*empty_document: 1 .*line 1\b"):
        read(document() + document(["a (1)"]))


GOOD = document(["a (1)"])  # 4 lines


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (document(["a (1", "b -"]), "line 6: .* 1 .*'GUM_news_river'"),
        (document(["a -", "b 1)"]), r"line 7: '1\)' "),
        (document(["a (1)", "b 1)"]), r"line 7: '1\)' "),
        (document(["a (x)"]), r"line 6: '\(x\)' "),
        (document(["a 1"]), r"line 6: '1' "),
        (document(["a (1)|"]), r"line 6: '' "),
        (document(["a -"], end=""), "line 5: .*'GUM_news_river' .*'#end document'"),
        (document(["a -"], end="") + GOOD, "line 8: .*'GUM_news_river'.*'#end document'"),
        ("#end document\n", "line 5: .*'#begin document .*'#end document'"),
        ("GUM\t0\t0\ta\t-\t-\n", r"line 5: .*'#begin document \(NAME\); part N', .*'GUM"),
        ("#begin document GUM\n", r"line 5: .*'#begin document \(NAME\)"),
        (document(["a -", "b -"]).replace("\t1\tb", "\t2\tb"), "line 7: .* 1 .*'2'"),
        (document(["a -"]).replace("\ta\t", "\t \t"), r"line 6: .*column 4\b"),
        (document(["a -", "b -"]).replace("b\t-", "b"), r"line 7: .* 12 columns"),
        ("#begin document (a); part 0\na\t0\t0\tb\n#end document\n", "line 6: .* 5 columns"),
    ],
)  # fmt: skip
def test_damage(read, bad, message):
    with pytest.raises(FormatError, match=message):
        read(GOOD + bad)


def test_files_without_documents(read):
    with pytest.raises(FormatError, match=r"/data\.txt: no example"):
        read("\n\n")
