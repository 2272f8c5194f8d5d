"""One pass over a text, one vector per span."""

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.embedding_models import toy_model

TEXT = "I sat by the bank. It was “wide”,\nand the river\u200b ran on.\n\nWe left, naïve as ever."


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model(tokenizer=TokenizerConfig(name="simple")))


def span(part):
    start = TEXT.index(part)
    return start, start + len(part)


@pytest.mark.parametrize("layers", ["all", "top", "average", 0])
@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_span_is_pooled_over_its_words_in_the_whole_text(embedder, layers, pooling):
    words = embedder.tokenizer.tokenize(TEXT)
    (vectors,) = embedder.embed([TEXT], layers=layers)
    parts = {"bank": (4, 5), "I sat by the bank.": (0, 6), "“wide”,\nand": (8, 13)}
    assert [words[first:last] for first, last in parts.values()] == [
        ["bank"], ["I", "sat", "by", "the", "bank", "."], ['"', "wide", '"', ",", "and"]
    ]  # fmt: skip
    got = embedder.embed_spans(TEXT, map(span, parts), pooling=pooling, layers=layers)
    of_words = embedder.embed_spans(words, parts.values(), pooling=pooling, layers=layers)
    expected = [
        getattr(vectors[..., first:last, :].astype(np.float64), pooling)(axis=-2)
        for first, last in parts.values()
    ]
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=1e-6)
    np.testing.assert_array_equal(of_words, got)
    alone = embedder.embed_sentences(["I sat by the bank."], pooling=pooling, layers=layers)
    assert np.allclose(got[1], alone[0], atol=1e-6) == (layers == 0)  # context counts


def test_cut_words_belong_to_a_span_and_spans_may_overlap(embedder):
    start = TEXT.index("bank")
    spans = [(start, start + 4), (start + 1, start + 2), (start - 1, start + 4), (0, len(TEXT))]
    vectors = embedder.embed_spans(TEXT, spans)
    np.testing.assert_array_equal(vectors[:3], vectors[[0, 0, 0]])
    np.testing.assert_allclose(vectors[3], embedder.embed_sentences([TEXT])[0], atol=1e-6)


def test_korean_spans_are_characters_of_the_raw_text():
    pytest.importorskip("kiwipiepy")
    embedder = Embedder(toy_model(tokenizer=TokenizerConfig(name="korean")))
    text = "배를 타고 강을 건넜다. 그는 배를 먹었다."
    words = embedder.tokenizer.tokenize(text)
    (got,) = embedder.embed_spans(text, [(text.index("건넜다"), text.index("건넜다") + 3)])
    first = words.index("건너")
    expected = embedder.embed_spans(words, [(first, first + 3)])  # 건너 었 다
    np.testing.assert_array_equal(got, expected[0])


@pytest.mark.parametrize(
    ("spans", "named"),
    [
        ([(0, 1), (5, 500)], rf"spans\[1\].* \[5, 500\).*{len(TEXT)} characters"),
        ([(-3, 2)], r"spans\[0\].* \[-3, 2\)"),
        ([(2, 2)], r"spans\[0\].* \[2, 2\)"),
        ([(4, 2)], r"spans\[0\].* \[4, 2\)"),
        ([(1, 2)], r"spans\[0\].* \[1, 2\).*no word"),
    ],
)
def test_spans_outside_the_text_or_without_a_word_are_refused(embedder, spans, named):
    with pytest.raises(ValueError, match=named):
        embedder.embed_spans(TEXT, spans)
    with pytest.raises(ValueError, match=r"spans\[0\].* \[1, 3\).* 2 words"):
        embedder.embed_spans(["I", "sat"], [(1, 3)])
    with pytest.raises(ValueError, match="pooling"):
        embedder.embed_spans(TEXT, [(0, 1)], pooling="first")
