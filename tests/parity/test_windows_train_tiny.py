"""The windows of the stream against the batches that bilm-tf's own data pipeline made."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from elmokit.corpus.shards import write_shards
from elmokit.corpus.stream import WindowStream
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.text.word_vocab import WordVocab

TRAIN_TINY = Path(__file__).parent / "fixtures" / "train_tiny"


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    text = (TRAIN_TINY / "data.txt").read_text(encoding="utf-8")
    sentences = [line.split() for line in text.splitlines()]
    # small shards, so that sentences and windows cross shard borders
    shards = write_shards(sentences, tmp_path_factory.mktemp("shards"), tokens_per_shard=100)
    assert len(shards) > 5
    char_config = CharVocabConfig(max_characters=50, normalization="none", truncation="byte")
    stream = WindowStream(
        shards, WordVocab.read(TRAIN_TINY / "vocab.txt"), CharVocab(char_config), batch_size=3,
        num_steps=5, shuffle="none",
    )  # fmt: skip
    return [batch for batch, _ in islice(stream, 20)]


@pytest.fixture(scope="module")
def expected():
    with np.load(TRAIN_TINY / "expected.npz") as arrays:
        return {key: arrays[key].astype(np.int64) for key in arrays if key.startswith("batch_")}


@pytest.mark.parametrize(("direction", "suffix"), [("forward", ""), ("backward", "_reverse")])
def test_all_batches_equal_the_original_pipeline(windows, expected, direction, suffix):
    num_batches = len(expected["batch_token_ids"])
    assert num_batches == 20
    for step in range(num_batches):
        window = windows[step]
        inputs = getattr(window, f"{direction}_inputs")
        targets = getattr(window, f"{direction}_targets")
        np.testing.assert_array_equal(
            window.char_ids[inputs], expected[f"batch_tokens_characters{suffix}"][step] + 1
        )
        np.testing.assert_array_equal(
            window.word_ids[inputs], expected[f"batch_token_ids{suffix}"][step] + 1
        )
        np.testing.assert_array_equal(targets, expected[f"batch_next_token_id{suffix}"][step] + 1)
