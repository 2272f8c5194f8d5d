import threading
import tracemalloc

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.inference.word_cache import ENTRY_BYTES, WordCache

from ...builders.embedding_models import largest_difference, random_sentences, toy_model

ENTRY = ENTRY_BYTES + 2 * 4


def fill(cache, words):
    """Look words up and keep those that were missing; each vector tells its word."""
    vectors, missing = cache.read(words)
    new = np.array([[ord(words[i])] * 2 for i in missing], np.float32).reshape(-1, 2)
    vectors[missing] = new
    cache.write([words[i] for i in missing], new)
    assert [chr(int(v[0])) for v in vectors] == list(words)
    return [words[i] for i in missing]


def test_known_words_are_not_asked_for_again():
    cache = WordCache(2, max_bytes=10 * ENTRY)
    assert fill(cache, list("abc")) == ["a", "b", "c"]
    assert fill(cache, list("cad")) == ["d"]
    assert fill(cache, []) == []
    assert len(cache) == 4


def test_the_word_used_longest_ago_goes_first():
    cache = WordCache(2, max_bytes=3 * ENTRY)
    fill(cache, list("abc"))
    fill(cache, list("a"))
    assert fill(cache, list("d")) == ["d"]
    assert fill(cache, list("ac")) == []
    assert fill(cache, list("b")) == ["b"]
    assert len(cache) == 3


def test_more_words_than_there_is_room_for():
    cache = WordCache(2, max_bytes=2 * ENTRY)
    assert fill(cache, list("abcdef")) == list("abcdef")
    assert len(cache) == 2
    assert fill(WordCache(2, max_bytes=0), list("ab")) == ["a", "b"]


def test_words_of_megabytes_are_not_kept():
    cache = WordCache(1)
    cache.write(["a" * 256, "b" * 257, "c", b"d" * 4000], np.arange(4, dtype=np.float32)[:, None])
    vectors, missing = cache.read(["a" * 256, "b" * 257, "c", b"d" * 4000])
    assert missing.tolist() == [1]
    assert vectors[[0, 2, 3]].tolist() == [[0.0], [2.0], [3.0]]


def test_words_count_as_memory_like_their_vectors():
    words = [f"a word of some letters {i}" for i in range(30_000)]
    tracemalloc.start()
    cache, vectors = WordCache(1, max_bytes=2**20), np.zeros((3000, 1), np.float32)
    for start in range(0, len(words), 3000):
        cache.write([*words[start : start + 3000]], vectors)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(cache) == 2**20 // (ENTRY_BYTES + 4)
    assert used < 1.5 * 2**20


def test_an_embedder_gives_the_same_bits_with_and_without(monkeypatch):
    model = toy_model()
    sentences = random_sentences(30)
    without = Embedder(model, word_cache=False)
    expected = without.embed(sentences)
    embedder = Embedder(model)
    calls = []
    encode = embedder._bilm.engine.encode_tokens
    monkeypatch.setattr(
        embedder._bilm.engine, "encode_tokens", lambda ids: calls.append(len(ids)) or encode(ids)
    )
    for _ in range(2):
        assert largest_difference(embedder.embed(sentences), expected) == 0
    assert len(calls) == 1
    assert without._bilm._cache is None


def test_many_threads_share_an_embedder():
    model = toy_model()
    embedder = Embedder(model)
    batches = [random_sentences(8, seed=seed) for seed in range(12)]
    expected = [Embedder(model, word_cache=False).embed(batch) for batch in batches]
    results = [None] * len(batches)

    def work(k):
        results[k] = embedder.embed(batches[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(batches))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for got, wanted in zip(results, expected, strict=True):
        assert largest_difference(got, wanted) == 0
    assert all(isinstance(array, np.ndarray) for array in results[0])
