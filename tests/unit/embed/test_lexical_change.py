import random
from pathlib import Path

import numpy as np
import pytest

from elmokit.embed.lexical_change import find_changes
from elmokit.errors import InputError
from elmokit.weights.model_dir import load_model

from ...builders.embedding_models import toy_model

NOUNS, VERBS = ["bank", "river", "boat", "water"], ["sits", "runs", "ends", "flows"]
WORDS = [f"{a}{b}" for a in ("ba", "du", "fo", "ki", "le") for b in ("m", "n", "r", "s")]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("change") / "model"
    toy_model(projection_dim=32, cell_dim=64).save(folder)
    return str(folder)


def sentence(draw, word, *, as_noun):
    """A word where one of two kinds of words stand."""
    noun, verb = draw.choice(NOUNS), draw.choice(VERBS)
    return f"the {word} {verb} here" if as_noun else f"a {noun} {word} the {draw.choice(NOUNS)}"


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """The first five pseudo-words are nouns in A and verbs in B, the others half and half."""
    folder, draw = tmp_path_factory.mktemp("corpora"), random.Random(0)
    for name, share in (("a", 0.95), ("b", 0.05)):
        lines = [
            sentence(draw, word, as_noun=draw.random() < (share if number < 5 else 0.5))
            for number, word in enumerate(WORDS)
            for _ in range(30)
        ]
        draw.shuffle(lines)
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "a.txt", folder / "b.txt"


def test_planted_changes_come_first(corpora, model):
    found = find_changes(*corpora, model=model, words=WORDS, num_rounds=199).words
    assert {one.word for one in found[:5]} == set(WORDS[:5])
    assert all(one.q["apd"] < 0.05 and one.units == (30, 30) for one in found[:5])
    assert np.mean([one.p["apd"] < 0.05 for one in found[5:]]) <= 0.2
    for one in found[:5]:  # their examples show the other use
        a, b = one.examples
        assert all(text.startswith(f"the {one.word} ") for text in a)
        assert all(f" {one.word} the " in text for text in b)


def test_frequent_words_are_compared_by_default_and_runs_repeat(corpora, model):
    options = {"model": model, "num_rounds": 9, "max_words": 6, "sample": 10, "seed": 4}
    found = find_changes(*corpora, **options)
    assert len(found.words) == 6
    assert {"the", "here"} <= {one.word for one in found.words}
    made = {"unit": "line", "sample": 10, "seed": 4, "layers": "average"}
    assert found.metadata.items() >= (made | {"model_hash": load_model(model).model_hash()}).items()
    assert found == find_changes(*corpora, **options)


def test_a_document_gives_at_most_one_occurrence(tmp_path, model):
    for name in "ab":
        text = "a bank\nthe bank\n\n" * 7 + "the bank\n"
        (tmp_path / name).write_text(text, encoding="utf-8")
    for unit, min_count, count in (
        ("line", 2, 15), ("document", 2, 8), ("auto", 4, 8), ("auto", 5, 15),
    ):  # fmt: skip
        options = {"words": ["bank"], "unit": unit, "min_count": min_count}
        (one,) = find_changes(tmp_path / "a", tmp_path / "b", model=model, **options).words
        assert one.units == (count, count)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"words": ["absent"]}, r"'absent' occurs in 0 .* of .*a\.txt"),
        ({"min_count": 10_000}, "min_count"),
        ({"layers": "all"}, "all"),
        ({"unit": "page"}, "page"),
        ({"sample": 1}, "sample"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_input_is_refused(corpora, model, options, named):
    with pytest.raises(InputError, match=named):
        find_changes(*corpora, model=model, **options)


def test_one_corpus_is_no_pair_whatever_its_name(corpora, model, monkeypatch):
    path = Path(corpora[0])
    monkeypatch.chdir(path.parent)
    with pytest.raises(InputError, match="share a file"):
        find_changes(path.name, path, model=model)
