"""The text that `elmokit demo` trains on and the probe sentences it looks at."""

import importlib.util
import unicodedata
from collections import Counter
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest

SENSES = {
    "en": {
        "bank": {"money", "river"},
        "play": {"theater", "game", "music"},
        "present": {"gift", "now"},
        "spring": {"season", "metal"},
        "match": {"game", "fire"},
        "light": {"lamp", "weight"},
    },
    "ko": {
        "배": {"ship", "pear", "belly"},
        "사과": {"apple", "apology"},
        "눈": {"eye", "snow"},
        "말": {"horse", "speech"},
        "밤": {"night", "chestnut"},
    },
}
GENERATOR = Path(__file__).parents[3] / "benchmarks" / "make_demo_text.py"

languages = pytest.mark.parametrize("language", ["en", "ko"])


def read_lines(name: str) -> list[str]:
    text = files("elmokit").joinpath(f"data/demo/{name}").read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return text.removesuffix("\n").split("\n")


def training_sentences(language: str) -> list[str]:
    return read_lines(f"{language}.txt")


def probe_rows(language: str) -> list[tuple[list[str], int, str, str]]:
    rows = []
    for line in read_lines(f"{language}.probe.tsv"):
        sentence, index, word, sense = line.split("\t")
        rows.append((sentence.split(" "), int(index), word, sense))
    return rows


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    if not GENERATOR.exists():
        pytest.skip("the sources of the text are not part of this installation")
    spec = importlib.util.spec_from_file_location("make_demo_text", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@languages
def test_text_is_composed_tokens_with_single_spaces(language: str) -> None:
    probes = [" ".join(tokens) for tokens, *_ in probe_rows(language)]
    for sentence in training_sentences(language) + probes:
        assert unicodedata.is_normalized("NFC", sentence)
        assert sentence == " ".join(sentence.split())
        assert sentence.split(" ")[-1] in {".", "?", "!"}
        assert len(sentence.split(" ")) >= 4


@languages
def test_text_has_the_size_of_a_toy_corpus(language: str) -> None:
    sentences = training_sentences(language)
    assert len(sentences) >= 1500
    assert 15_000 <= sum(len(sentence.split()) for sentence in sentences) <= 30_000


@languages
def test_hardly_any_sentence_stands_twice(language: str) -> None:
    sentences = training_sentences(language)
    assert len(set(sentences)) >= 0.99 * len(sentences)


@languages
def test_words_of_interest_are_frequent(language: str) -> None:
    counts = Counter(" ".join(training_sentences(language)).split())
    for word, senses in SENSES[language].items():
        assert counts[word] >= 100 * len(senses)


@languages
def test_every_sense_has_probes_that_point_at_the_word(language: str) -> None:
    found: dict[str, Counter[str]] = {}
    for tokens, index, word, sense in probe_rows(language):
        assert tokens[index] == word
        assert tokens.count(word) == 1
        found.setdefault(word, Counter())[sense] += 1
    assert {word: set(senses) for word, senses in found.items()} == SENSES[language]
    assert all(6 <= count <= 10 for senses in found.values() for count in senses.values())


@languages
def test_probes_are_held_out_but_made_of_known_words(language: str) -> None:
    sentences = training_sentences(language)
    known = {token for sentence in sentences for token in sentence.split()}
    probes = [row[0] for row in probe_rows(language)]
    assert not {" ".join(tokens) for tokens in probes} & set(sentences)
    assert len({" ".join(tokens) for tokens in probes}) == len(probes)
    unknown = [token for tokens in probes for token in tokens if token not in known]
    assert len(unknown) <= 0.01 * sum(map(len, probes))


def test_english_files_are_what_their_source_gives(generator: ModuleType) -> None:
    text = generator.load_source("en")
    assert text.training_lines() == training_sentences("en")
    assert text.probe_lines() == read_lines("en.probe.tsv")


def test_every_english_sense_is_frequent_in_the_training_text(generator: ModuleType) -> None:
    counts = generator.load_source("en").sense_counts()
    expected = {(word, sense) for word, senses in SENSES["en"].items() for sense in senses}
    assert set(counts) == expected
    assert min(counts.values()) >= 100


@pytest.mark.slow
def test_every_korean_sense_is_frequent_in_the_training_text(generator: ModuleType) -> None:
    pytest.importorskip("kiwipiepy")
    counts = generator.load_source("ko").sense_counts()
    expected = {(word, sense) for word, senses in SENSES["ko"].items() for sense in senses}
    assert set(counts) == expected
    assert min(counts.values()) >= 100


def test_a_template_uses_every_choice_before_any_comes_again(generator: ModuleType) -> None:
    drawn = generator.expand("[a|b|c] {what} .", {"what": "x|y|z"}, 3)
    assert len(drawn) == 3
    assert {line.split()[0] for line in drawn} == {"a", "b", "c"}
    assert {line.split()[1] for line in drawn} == {"x", "y", "z"}
    assert generator.expand("[a|b] .", {}, 10) == generator.expand("[a|b] .", {}, 10)
    assert sorted(generator.expand("[a|b] .", {}, 10)) == ["a .", "b ."]


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        ("배(을) 바다(으로) 섬(으로)", "배를 바다로 섬으로"),
        ("형(은) 누나(은)", "형은 누나는"),
        ("교실(으로) 감(과) 포도(과)", "교실로 감과 포도와"),
    ],
)
def test_particles_follow_the_final_sound(
    generator: ModuleType, written: str, resolved: str
) -> None:
    assert generator.choose_particles(written) == resolved


def test_a_sentence_under_the_wrong_heading_is_refused(generator: ModuleType) -> None:
    source = ["== bank money 5", "The bank is open .", "The river is deep ."]
    with pytest.raises(ValueError, match="The river is deep"):
        generator.compose(source, "en", generator.split_on_spaces)


def test_a_probe_is_taken_out_of_the_training_text(generator: ModuleType) -> None:
    source = [
        "== bank money 5",
        "The bank is [open|closed] .",
        "== probe bank money",
        "The *bank* is open .",
    ]
    text = generator.compose(source, "en", generator.split_on_spaces)
    assert text.training_lines() == ["The bank is closed ."]
    assert text.probe_lines() == ["The bank is open .\t1\tbank\tmoney"]
