"""`trace`: the parts of a word's vectors, each held to the module that computes it."""

import unicodedata
from dataclasses import replace

import numpy as np
import pytest
import torch

from elmokit.corpus.readers import ReadReport, read_text_lines
from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.inspection.trace import count_tokens, tokenize, tokenize_lines_of, trace, window_text
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.lexicon import Lexicon
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.weights.model_dir import PretrainedBiLM, load_model

from ...builders.training_models import toy_model

SENTENCES = {
    "en": "The boat left the bank of the river .",
    "ko": "강에 배가 떠서 밥을 먹었다.",
}


@pytest.fixture(scope="module")
def model():
    return toy_model()


@pytest.mark.parametrize("name", SENTENCES)
def test_layers_are_those_of_the_embedder(name):
    model = load_model(name)
    (expected,) = Embedder(model).embed([SENTENCES[name]], layers="all")
    for index in (0, 2, expected.shape[1] - 1):
        found = trace(model, SENTENCES[name], word=index)
        layers = [np.concatenate((layer.forward, layer.backward)) for layer in found.layers]
        np.testing.assert_allclose(layers, expected[:, index], atol=1e-5)
        np.testing.assert_allclose(found.mixture, expected[:, index].mean(axis=0), atol=1e-5)
        np.testing.assert_array_equal(found.layers[0].forward, found.layers[0].backward)


@torch.no_grad()
def test_the_token_is_computed_from_the_filters_by_highways_and_projection():
    encoder = load_model("en").token_encoder
    found = trace("en", SENTENCES["en"], word=1)
    x = torch.from_numpy(np.concatenate([one.values for one in found.filters]))
    for highway, told in zip(encoder.highways, found.highways, strict=True):
        gates = torch.from_numpy(told.gates)
        x = gates * torch.relu(highway.transform(x)) + (1 - gates) * x
        np.testing.assert_allclose(x, told.output, atol=1e-5)
    np.testing.assert_allclose(encoder.projection(x), found.token, atol=1e-5)
    np.testing.assert_allclose(found.layers[0].forward, found.token, atol=1e-5)


@torch.no_grad()
def test_every_filter_wins_where_torchs_convolution_is_highest(model):
    found = trace(model, ["the", "강", "river"], word=1)
    encoder = model.token_encoder
    characters = encoder.char_embedding(torch.tensor([found.char_ids])).transpose(1, 2)
    for convolution, one in zip(encoder.convolutions, found.filters, strict=True):
        best, positions = convolution(characters)[0].max(dim=1)
        assert convolution.kernel_size == (one.width,)
        np.testing.assert_allclose(one.values, torch.relu(best), atol=1e-5)
        np.testing.assert_array_equal(one.positions, positions)
        assert len(one.windows) == len(positions)
        for at, window in zip(one.positions, one.windows, strict=True):
            assert window == window_text(found.char_ids[at : at + one.width])


def test_the_mixture_has_the_weights_and_the_scale_that_are_given(model):
    plain = trace(model, ["the", "강"])
    layers = [np.concatenate((layer.forward, layer.backward)) for layer in plain.layers]
    assert plain.weights == (1 / len(layers),) * len(layers)
    found = trace(model, ["the", "강"], weights=[0.2, 0.5, 0.3], gamma=2)
    expected = 2 * (0.2 * layers[0] + 0.5 * layers[1] + 0.3 * layers[2])
    np.testing.assert_allclose(found.mixture, expected, atol=1e-6)
    assert plain.layers[1].norms == pytest.approx(
        (np.linalg.norm(plain.layers[1].forward), np.linalg.norm(plain.layers[1].backward))
    )


def test_parts_of_characters_are_shown_as_bytes():
    assert window_text([177, 166, 260]) == "\\xb0\\xa5$"
    assert window_text([259, 257, 260]) == "^<257>$", "the word <S>"


@pytest.mark.parametrize(
    ("sentence", "options", "message"),
    [
        (["the", "강"], {"word": -1}, r"`word` .*0:the 1:강.*-1"),
        ([], {}, r"`word` .*none"),
        (["the"], {"weights": [0.5, 0.5]}, r"`weights` .*\b3\b.*sum of 1"),
        (["the"], {"weights": [float("nan"), 1, 1]}, r"`weights` .*\b3\b.*sum of 1"),
        (["the"], {"gamma": float("inf")}, r"`gamma`.*finite.*inf"),
    ],
)
def test_errors(model, sentence, options, message):
    with pytest.raises(InputError, match=message):
        trace(model, sentence, **options)


def reading(**settings):
    return toy_model(tokenizer=TokenizerConfig(name="simple"), **settings)


@pytest.fixture(scope="module")
def simple():
    return reading()


def test_what_the_normalization_changed_is_told(simple):
    decomposed = unicodedata.normalize("NFD", "강")
    tokens = tokenize(simple, f"“the {decomposed} bank").tokens
    assert [(t.text, t.raw, t.changed_by) for t in tokens] == [
        ('"', "“", "normalization"), ("the", "the", None),
        ("강", decomposed, "normalization"), ("bank", "bank", None),
    ]  # fmt: skip
    assert tokens[2].is_known


def test_what_the_korean_tokenizer_changed_is_told_with_the_shared_stretch():
    tokens = tokenize("ko", "강에 갔다").tokens
    assert [(t.text, t.raw, t.changed_by) for t in tokens] == [
        ("강", "강", None), ("에", "에", None),
        ("가", "갔", "tokenizer"), ("었", "갔", "tokenizer"), ("다", "다", None),
    ]  # fmt: skip
    assert tokens[2].char_ids == (259, *(byte + 1 for byte in "가".encode()), 260)


def test_a_cut_token_ends_at_a_whole_character(simple):
    (token,) = tokenize(simple, "강" * 5).tokens  # 15 bytes, of which 12 fit
    assert token.is_cut
    assert token.char_ids[1:-1] == tuple(byte + 1 for byte in ("강" * 4).encode())


def test_a_model_of_words_reads_no_characters_and_one_without_vocabulary_knows_none():
    (token,) = tokenize(reading(word_input=True), "강" * 30).tokens
    assert (token.char_ids, token.is_cut, token.is_known) == ((), False, False)
    (token,) = tokenize(reading(vocab=None, softmax=None), "the").tokens
    assert token.is_known is None


def test_characters_of_a_lexicon_are_shown_without_the_id_of_the_word():
    lexicon = Lexicon(("a", "b", "c"), ("ab", "c"))
    chars = CharVocabConfig(max_characters=8, normalization="none")
    config = replace(toy_model().config, char_vocab=chars, lexicon=lexicon.config(word_dim=4))
    found = tokenize(PretrainedBiLM(config, lexicon=lexicon), "ab c zz").tokens
    assert [token.char_ids for token in found] == [(2, 7, 8, 3), (2, 9, 3), (2, 6, 6, 3)]


def test_lines_of_files_have_their_sentences_numbers_and_counts(simple, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("The river is. A “ship” is!\n\n" + "강" * 9 + "\n", encoding="utf-8")
    read = ReadReport()
    lines, splitter = read_text_lines([path], read), build_tokenizer("simple")
    texts = list(tokenize_lines_of(simple, lines, splitter, read=read))
    assert [(text.file, text.line, len(text.sentences)) for text in texts] == [
        (str(path), 1, 2), (str(path), 3, 1),
    ]  # fmt: skip
    first = texts[0]
    written = [first.raw[token.start : token.end] for token in first.sentences[1]]
    assert written == ["A", "“", "ship", "”", "is", "!"]
    expected = {"sentences": 3, "tokens": 11, "unknown": 8, "cut": 1, "normalized": 2,
                "altered": 0, "unplaced": 0}  # fmt: skip
    assert dict(count_tokens(*texts)) == expected
    assert [*count_tokens()] == [*expected]
    assert (read.sentences, read.words, read.skipped) == (3, 11, {"blank": 1})
