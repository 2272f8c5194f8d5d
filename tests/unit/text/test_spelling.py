"""Spellings: probabilities of words in any script, which sum to one; files, which are checked."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from elmokit.errors import FormatError
from elmokit.text import spelling
from elmokit.text.spelling import DISCOUNT, NUM_BEGINNINGS, NUM_CONTINUATIONS, SpellingModel
from elmokit.text.word_vocab import WordVocab, fits_a_line

VOCAB = WordVocab.build([])
WORDS = ["walking", "walked", "talks", "여행자", "여행기", "여권", "naïve", "🙂", "7", "a" * 40]


def plain_nats(word, words):
    """Interpolate as the equation has it, from the longest context that begins with a character."""
    rows = [b"\xff" + one.encode() + b"\xfe" for one in words]
    begins = [[(byte & 0xC0) != 0x80 for byte in row] for row in rows]
    counts = Counter(
        row[i : i + n]
        for row, starts in zip(rows, begins, strict=True)
        for n in range(1, spelling.MAX_LENGTH + 1)
        for i in range(len(row) - n + 1)
        if starts[i]
    )
    counts[b""] = sum(sum(starts) - 1 for starts in begins)
    del counts[b"\xff"]
    contexts = {**counts, b"\xff": len(words)}

    def unigram(byte):
        follow = {key: count for key, count in counts.items() if len(key) == 1}
        rest = DISCOUNT * len(follow) / counts[b""]
        own = max(0, counts[byte] - DISCOUNT) / counts[b""] if byte in follow else 0
        return own + rest / NUM_BEGINNINGS

    total, row = 0.0, b"\xff" + word.encode() + b"\xfe"
    for place in range(1, len(row)):
        is_start = (row[place] & 0xC0) != 0x80
        prob = unigram(row[place : place + 1]) if is_start else 1 / NUM_CONTINUATIONS
        if place == 1:
            prob /= 1 - unigram(b"\xfe")
        for n in range(2, min(spelling.MAX_LENGTH, place + 1) + 1):
            context = row[place - n + 1 : place]
            if (context[0] & 0xC0) == 0x80 or context not in contexts:
                continue
            follow = [key for key in counts if key[:-1] == context]
            rest = 1 - sum(counts[key] - DISCOUNT for key in follow) / contexts[context]
            own = counts[context + row[place : place + 1]]
            prob = rest * prob + max(0, own - DISCOUNT) / contexts[context]
        total -= math.log(prob)
    return total


@pytest.mark.parametrize("word", [*WORDS, "talking", "여행권", "🙁", "Ω", "b"])
def test_equals_the_equation_within_the_rounding_of_the_file(word):
    found = SpellingModel.train(WORDS).nats([word], VOCAB)[0]
    assert found == pytest.approx(plain_nats(word, WORDS), rel=0.05)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5), st.text(min_size=1))
def test_any_word_has_a_probability_of_its_own_in_any_company(words, word):
    model = SpellingModel.train(words)
    vocab = WordVocab.build(
        [(prefix, 1) for prefix in {word[:2], word[:3]} - {word} if fits_a_line(prefix)]
    )
    alone, together = model.nats([word], vocab), model.nats([*words, word], vocab)
    assert 0 < alone[0] < math.inf
    assert together[-1] == pytest.approx(alone[0])
    row = word.encode()
    steps = model.next_probs([row[:place] for place in range(len(row) + 1)], vocab)
    assert steps.sum(axis=1) == pytest.approx(1)
    path = steps[np.arange(len(row) + 1), [*row, spelling.END_OF_WORD]]
    assert -np.log(path).sum() == pytest.approx(alone[0], rel=1e-6)


def test_a_file_holds_no_more_than_the_most_n_grams(monkeypatch, tmp_path):
    generator = np.random.default_rng(0)
    words = ["".join(map(chr, generator.integers(97, 123, size=9))) for _ in range(300)]
    monkeypatch.setattr(spelling, "MAX_NGRAMS", 500)
    model = SpellingModel.train(words)
    assert len(model.to_bytes()) < 3 * 500 + 400
    model.write(tmp_path / "spelling.safetensors")
    again = SpellingModel.read(tmp_path / "spelling.safetensors")
    assert again.sha256 == model.sha256
    np.testing.assert_array_equal(again.nats(words, VOCAB), model.nats(words, VOCAB))


@pytest.mark.parametrize("damage", ["short", "missing", "children", "order", "probable"])
def test_a_damaged_file_is_named(damage, tmp_path):
    path = tmp_path / "spelling.safetensors"
    arrays = {
        name: array.copy() for name, array in load(SpellingModel.train(WORDS).to_bytes()).items()
    }
    if damage == "missing":
        del arrays["costs"]
    elif damage == "children":
        arrays["num_children"][1:] = 3
    elif damage == "order":
        arrays["symbols"][:] = arrays["symbols"][::-1]
    elif damage == "probable":
        arrays["costs"][:] = 0
    content = save(arrays)
    path.write_bytes(content[: len(content) // 2] if damage == "short" else content)
    with pytest.raises(FormatError, match=path.name):
        SpellingModel.read(path)


def test_probabilities_of_all_words_sum_to_one():
    generator = np.random.default_rng(0)
    words = {
        "".join(generator.choice(["a", "b"], size=generator.integers(1, 6))) for _ in range(99)
    }
    model = SpellingModel.train(sorted(words))
    every = ["".join(p) for n in range(1, 13) for p in itertools.product("ab", repeat=n)]
    # the rest is for words with other bytes, and for longer ones
    assert 0.8 < np.exp(-model.nats(every, VOCAB)).sum() < 1
    vocab = WordVocab.build([(word, 1) for word in sorted(words)[::2]])
    outside = [word for word in every if word not in vocab]
    assert 0.7 < np.exp(-model.nats(outside, vocab)).sum() < 1
