"""Copies within a corpus, and between corpus and validation text, are found by their sentences."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.corpus.preparation import VocabConfig, find_text, prepare_text
from elmokit.corpus.repeats import Repeats
from elmokit.corpus.shards import write_shards
from elmokit.corpus.text_shards import TextConfig
from elmokit.text.tokenizers.registry import TokenizerConfig

_WORDS = st.lists(st.sampled_from(["a", "b", "ß", "은"]), min_size=1, max_size=3)


def lines(name, number):
    draw = random.Random(name)
    words = (" ".join(f"w{draw.randrange(500)}" for _ in range(9)) for _ in range(number))
    return [f"{line.capitalize()} ." for line in words]


CORPUS = lines("corpus", 300)


@pytest.fixture
def warnings_of(tmp_path, caplog):
    def prepare(corpus, valid=None):
        paths = {}
        for name, text in (("corpus.txt", corpus), ("valid.txt", valid or [])):
            paths[name] = tmp_path / name
            paths[name].write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
        return of_paths(paths["corpus.txt"], paths["valid.txt"] if valid else None)

    def of_paths(corpus, valid=None):
        caplog.clear()
        prepare_text(
            find_text([corpus], [] if valid is None else [valid]), tmp_path / "run",
            text=TextConfig(tokenizer=TokenizerConfig(name="simple")),
            vocab=VocabConfig(min_count=1), normalization="plain-1",
        )  # fmt: skip
        return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]

    prepare.of_paths = of_paths
    return prepare


@pytest.mark.parametrize(
    ("valid", "share"),
    [
        (CORPUS[10:60], "100 %"),
        (random.Random(0).sample(CORPUS, 30) + lines("others", 10), "75 %"),
        ([f"  {line.replace(' ', '  ')}\r" for line in CORPUS[:30]], "100 %"),
        ([f"{one} {two}" for one, two in zip(CORPUS[:9], CORPUS[9:18], strict=True)], "100 %"),
    ],
    ids=["a part", "shuffled, among others", "other white space", "two in a line"],
)
def test_validation_text_of_the_corpus_is_told_with_its_share(valid, share, warnings_of):
    (message,) = warnings_of(CORPUS, valid)
    assert "validation" in message
    assert share in message


@pytest.mark.parametrize("valid", [None, lines("others", 40)], ids=["held out", "given"])
def test_a_corpus_of_copies_is_told_with_its_share(valid, warnings_of):
    messages = warnings_of(3 * CORPUS + lines("more", 100), valid)
    assert sum("60 % of the corpus" in message for message in messages) == 1
    assert sum("validation" in message for message in messages) == (valid is None)


def _shards(sentences, directory, num_words=4):
    return write_shards(sentences, directory, tokens_per_shard=num_words)


@given(corpus=st.lists(_WORDS, min_size=1, max_size=9), valid=st.lists(_WORDS, min_size=1))
def test_shares_are_those_of_sets_of_sentences(corpus, valid, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    shards = _shards(corpus, folder / "corpus")
    repeats = Repeats(shards.num_sentences, _shards(valid, folder / "valid"))
    for index in range(len(shards)):
        repeats.add(shards.load(index))
    shared = sum(len(words) for words in valid if words in corpus)
    new = sum(map(len, {tuple(words): words for words in corpus}))
    assert repeats.shared_share() == pytest.approx(shared / sum(map(len, valid)))
    assert repeats.repeated_share() == pytest.approx(1 - new / sum(map(len, corpus)))
