"""Tokens as a model reads them, and their places in the raw text."""

import unicodedata
from dataclasses import replace

import pytest

from elmokit.corpus.readers import ReadReport, read_text_lines
from elmokit.inspection.tokens import count_tokens, tokenize, tokenize_lines_of
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.lexicon import Lexicon
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.weights.model_dir import PretrainedBiLM

from ...builders.training_models import toy_model


def reading_as(tokenizer, **settings):
    return toy_model(tokenizer=TokenizerConfig(name=tokenizer), **settings)


@pytest.fixture(scope="module")
def simple():
    return reading_as("simple")


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
    (token,) = tokenize(reading_as("simple", word_input=True), "강" * 30).tokens
    assert (token.char_ids, token.is_cut, token.is_known) == ((), False, False)
    (token,) = tokenize(reading_as("simple", vocab=None, softmax=None), "the").tokens
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
