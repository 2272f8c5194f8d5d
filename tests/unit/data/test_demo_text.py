"""The text that `elmokit demo` trains on and the probe sentences it looks at."""

import unicodedata
from collections import Counter
from importlib.resources import files

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


@languages
def test_text_is_composed_tokens_with_single_spaces(language: str) -> None:
    probes = [" ".join(tokens) for tokens, *_ in probe_rows(language)]
    for sentence in training_sentences(language) + probes:
        assert unicodedata.is_normalized("NFC", sentence)
        assert sentence == " ".join(sentence.split())
        assert sentence.split(" ")[-1] in {".", "?", "!"}
        assert len(sentence.split(" ")) >= 4


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
