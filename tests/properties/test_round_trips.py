"""Shards, vocabularies and vectors are read back as they were, whatever the words."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elmokit.corpus.shards import ShardSet, write_shards
from elmokit.text.word_counter import WordCounter
from elmokit.text.word_vocab import WordVocab
from elmokit.vectors.vector_files import read_vectors, write_vectors

any_words = st.one_of(
    st.text(max_size=8),  # any code point: spaces, line ends, emoji, Hangul, combining marks
    st.text(alphabet=st.characters(categories=["Cs"]), min_size=1, max_size=2),  # lone surrogates
    st.sampled_from(["", " ", "\n", "\0", "\u2028", "<S>", "</S>", "<UNK>", "가", "\u1100\u1161"]),
)
corpora = st.lists(st.lists(any_words, max_size=6), max_size=12)
few_words = st.sampled_from(["a", "b", "B", "가", "나", "é", "👍", "a b", "<unk>", "\n", "x\x85y"])
texts = st.lists(st.lists(few_words | st.text(max_size=3), max_size=6), max_size=20)
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def new_path(tmp_path):
    """Return a function that gives another path in each example."""
    numbers = iter(range(10**6))
    return lambda: tmp_path / str(next(numbers))


@given(corpus=corpora.filter(any), tokens_per_shard=st.integers(1, 20))
@in_one_folder
def test_sharding_loses_nothing_and_depends_on_the_sentences_only(
    new_path, corpus, tokens_per_shard
):
    sentences = [sentence for sentence in corpus if sentence]
    path = new_path()
    write_shards(corpus, path, tokens_per_shard=tokens_per_shard)
    shards = ShardSet.open(path)
    assert list(shards.sentences()) == sentences
    assert shards.num_words == sum(map(len, sentences))
    assert shards.num_empty_sentences == len(corpus) - len(sentences)
    assert all(entry.num_words >= tokens_per_shard for entry in shards.entries[:-1])
    assert len(list(path.iterdir())) == len(shards) + 1
    made = {"metadata": {"made": "again"}, "tokens_per_shard": tokens_per_shard}
    assert write_shards(corpus, new_path(), **made).fingerprint == shards.fingerprint


@given(texts, st.integers(1, 5), st.integers(1, 3), st.none() | st.integers(0, 6))
def test_counts_do_not_depend_on_memory(corpus, max_distinct, min_count, max_size):
    with WordCounter(max_distinct=max_distinct) as small, WordCounter() as large:
        for sentence in corpus:
            small.add(sentence)
            large.add(sentence)
        limits = {"min_count": min_count, "max_size": max_size}
        counts = small.most_common(**limits)
        assert counts == large.most_common(**limits)
    truth = Counter(word for sentence in corpus for word in sentence)
    assert all(truth[word] == count >= min_count for word, count in counts)
    assert counts == sorted(counts, key=lambda pair: (-pair[1], pair[0]))


@given(corpus=texts)
@in_one_folder
def test_a_counted_vocabulary_survives_its_file(new_path, corpus):
    with WordCounter() as counter:
        for sentence in corpus:
            counter.add(sentence)
        vocab = WordVocab.build(counter.most_common())
    path = new_path()
    vocab.write(path)
    again = WordVocab.read(path)
    ids = again.encode(vocab.words)
    assert ids.tolist() == list(range(1, len(vocab) + 1))
    assert tuple(again.decode(ids)) == again.words == vocab.words


words_of_files = st.text(
    st.characters(blacklist_characters=" \n\0", blacklist_categories=["Cs"]), min_size=1, max_size=6
)
numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(
    words=st.lists(words_of_files, min_size=1, max_size=8, unique=True),
    row=st.lists(numbers, min_size=1, max_size=5),
    suffix=st.sampled_from([".bin", ".txt"]),
)
@in_one_folder
def test_vectors_are_read_bit_for_bit(new_path, words, row, suffix):
    values = np.array([row[k % len(row) :] + row[: k % len(row)] for k in range(len(words))], "f4")
    path = new_path().with_suffix(suffix)
    write_vectors(path, words, values)
    again, part = read_vectors(path), read_vectors(path, only=words[:1])
    assert again.words == words
    assert again.values[2:].tobytes() == values.tobytes()
    assert part.words == [word for word in words if word in {words[0], words[0].lower()}]
