"""Writing shards loses nothing, whatever the words are."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

words = st.one_of(
    st.text(max_size=8),  # any code point: spaces, line ends, emoji, Hangul, combining marks
    st.text(alphabet=st.characters(categories=["Cs"]), min_size=1, max_size=2),  # lone surrogates
    st.sampled_from(["", " ", "\n", "\0", "\u2028", "<S>", "</S>", "<UNK>", "가", "\u1100\u1161"]),
)
sentences = st.lists(st.lists(words, max_size=6), max_size=12)


@given(corpus=sentences, tokens_per_shard=st.integers(1, 20))
def test_sharding_loses_nothing(corpus, tokens_per_shard):
    from elmokit.corpus.shards import ShardSet, write_shards

    kept = [sentence for sentence in corpus if sentence]
    if not kept:
        return
    with tempfile.TemporaryDirectory() as directory:
        write_shards(corpus, directory, tokens_per_shard=tokens_per_shard)
        shards = ShardSet.open(directory)
        assert list(shards.sentences()) == kept
        assert shards.num_words == sum(map(len, kept))
        assert shards.num_empty_sentences == len(corpus) - len(kept)
        assert all(entry.num_words >= tokens_per_shard for entry in shards.entries[:-1])
        assert len(list(Path(directory).iterdir())) == len(shards) + 1


@given(corpus=sentences.filter(any))
def test_shards_depend_on_the_sentences_only(corpus):
    from elmokit.corpus.shards import write_shards

    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first = write_shards(corpus, one, tokens_per_shard=7, metadata={"made": "first"})
        second = write_shards(corpus, other, tokens_per_shard=7, metadata={"made": "second"})
        assert first.fingerprint == second.fingerprint
