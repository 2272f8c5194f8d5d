"""Documents with coreference."""

import time

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
    def read(content, **settings):
        return list(read_coreference(write(content), **settings))

    return read


def test_mentions_count_in_tokens_of_the_document(read):
    # tokens:      0        1         2         3       4         5        6
    content = document(
        ["Mina (4", "Kim 4)", "sings _"], ["Her (7|(4)", "sister 7)", "hears -", "her (4)"]
    )
    (found,) = read(content)
    assert found.sentences == (("Mina", "Kim", "sings"), ("Her", "sister", "hears", "her"))
    assert found.clusters == (((0, 2), (3, 4), (6, 7)), ((3, 5),))
    assert found.tokens[3:5] == ("Her", "sister")
    assert (found.name, found.part, found.genre) == ("GUM_news_river", 0, "news")
    assert found.speakers is None
    assert found.location.line == 1


def test_mentions_of_one_cluster_may_nest(read):
    # the inner one closes first: (1, 2) and (0, 3)
    (found,) = read(document(["a (1", "b (1|1)", "c 1)"]))
    assert found.clusters == (((0, 3), (1, 2)),)


def test_mentions_may_cross_and_one_span_may_be_in_two_clusters(read):
    (found,) = read(document(["a (1", "b (2", "c 1)", "d 2)", "e (1)|(2)"]))
    assert found.clusters == (((0, 3), (4, 5)), ((1, 4), (4, 5)))


def test_speakers_and_genres(read):
    (found,) = read(document(["네 - 미나", "왜 -"], name="bc/cctv/00/cctv_0001", part="002"))
    assert found.speakers == ("미나", None)
    assert (found.genre, found.part, found.clusters) == ("bc", 2, ())


def test_an_empty_last_column_is_no_mention(read):
    content = (
        "#begin document (77_a_tale); part 0\n"
        "77_a_tale\t0\t0\tRain\t_\t_\t_\t_\t_\t_\t_\t_\t\n77_a_tale\t0\t1\tfell\t_\t_\t_\t_\t_\t_\t_\t_\t(0)\n"
        "#end document\n"
    )
    (found,) = read(content)
    assert found.clusters == (((1, 2),),)
    assert (found.genre, found.speakers) == (None, None)


def test_columns_may_be_separated_by_spaces_and_their_number_differs_between_sentences(read):
    content = (
        "#begin document (nw/a); part 000\nnw/a 0  0   Rain NN * - - - - * (ARG0*) (3)\n"
        "\n\nnw/a 0 0 It PRP * - - - - * (3)\n\n#end document\n"
    )
    (found,) = read(content)
    assert found.clusters == (((0, 1), (1, 2)),)


def test_an_empty_document_is_skipped(read, report):
    content = document() + document(["a (1)"])
    report.max_skipped_share = 0.5
    (found,) = read(content, report=report)
    assert found.tokens == ("a",)
    assert report.skipped == {"empty_document": 1}
    with pytest.raises(
        FormatError, match=r"data\.txt: 1 of 2 .* 0\.05 .*empty_document: 1 .*line 1\b"
    ):
        read(content)


GOOD = document(["a (1)"])  # 4 lines


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (document(["a (1", "b -"]), "line 6: .* 1 .*'GUM_news_river'"),
        (document(["a -", "b 1)"]), r"line 7: '1\)' .* 1,"),
        (document(["a (1)", "b 1)"]), r"line 7: '1\)' .* 1,"),
        (document(["a (x)"]), r"line 6: '\(x\)' .*: \(3 .* 3\) .* \(3\)"),
        (document(["a 1"]), r"line 6: '1' .*: \(3 .* 3\) .* \(3\)"),
        (document(["a (1)|"]), r"line 6: '' .*: \(3 .* 3\) .* \(3\)"),
        (document(["a -"], end=""), "line 5: .*'GUM_news_river' .*'#end document'"),
        (document(["a -"], end="") + GOOD, "line 5: .*'GUM_news_river' .*'#end document'"),
        ("#end document\n", "line 5: '#end document' .*'#begin document'"),
        ("GUM\t0\t0\ta\t-\t-\n", r"line 5: .*'#begin document \(NAME\); part N', .*'GUM"),
        ("#begin document GUM\n", r"line 5: .*'#begin document \(NAME\)"),
        (document(["a -", "b -"]).replace("\t1\tb", "\t2\tb"), "line 7: .* 1 .*'2'"),
        (document(["a -"]).replace("\ta\t", "\t \t"), r"line 6: [^\d]*column 4\b"),
        (document(["a -", "b -"]).replace("b\t-", "b"), r"line 7: 11 .* 12\b"),
        ("#begin document (a); part 0\na\t0\t0\tb\n#end document\n", "line 6: 4 .* 5,"),
    ],
)  # fmt: skip
def test_damage(read, bad, message):
    with pytest.raises(FormatError, match=message):
        read(GOOD + bad)


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_files_without_documents(read, content):
    with pytest.raises(FormatError, match=r"/data\.txt: .*\bempty\b"):
        read(content)


@pytest.mark.usefixtures("without_type_checks")
def test_a_document_of_50000_words_with_as_many_mentions(read):
    begin = time.process_time()
    sentence = ["물 (1)|(2"] * 25 + ["강 2)"] * 25
    (found,) = read(document(*[sentence] * 1000))
    assert len(found.tokens) == 50_000
    assert [len(cluster) for cluster in found.clusters] == [25_000, 25_000]
    assert time.process_time() - begin < 30  # a square of it takes minutes
