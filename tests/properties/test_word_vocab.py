import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from elmokit.text.word_counter import WordCounter
from elmokit.text.word_vocab import WordVocab

few_words = st.sampled_from(["a", "b", "B", "가", "나", "é", "👍", "a b", "<unk>", "\n", "x\x85y"])
sentences = st.lists(st.lists(few_words | st.text(max_size=3), max_size=6), max_size=20)


@given(sentences, st.integers(1, 5), st.integers(1, 3), st.none() | st.integers(0, 6))
def test_counts_do_not_depend_on_memory(corpus, max_distinct, min_count, max_size):
    with WordCounter(max_distinct=max_distinct) as small, WordCounter() as large:
        for sentence in corpus:
            small.add(sentence)
            large.add(sentence)
        limits = {"min_count": min_count, "max_size": max_size}
        found = small.most_common(**limits)
        assert found == large.most_common(**limits)
        truth = Counter(word for sentence in corpus for word in sentence)
        assert all(truth[word] == count >= min_count for word, count in found)
        assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))


@given(sentences)
def test_a_counted_vocabulary_survives_its_file(corpus):
    with WordCounter() as counter, tempfile.TemporaryDirectory() as directory:
        for sentence in corpus:
            counter.add(sentence)
        vocab = WordVocab.build(counter.most_common())
        path = Path(directory) / "vocab.txt"
        vocab.write(path)
        again = WordVocab.read(path)
    assert again.words == vocab.words
    ids = again.encode(vocab.words)
    assert ids.tolist() == list(range(1, len(vocab) + 1))
    assert tuple(again.decode(ids)) == vocab.words
