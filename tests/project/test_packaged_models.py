"""The models that ship: small, licensed, whole, and loaded where none is named."""

import re
import time
from pathlib import Path

import numpy as np
import pytest

from elmokit.weights.locate import PACKAGED_MODELS, packaged_models
from elmokit.weights.model_dir import load_model

ROOT = Path(__file__).parents[2]
MAX_BYTES = 20_000_000
FORBIDDEN = ("NC", "ND")
"""Parts of licenses under which no text of a packaged model may stand."""
SENTENCES = {"en": "I sat by the bank .", "ko": "나는 강가에 앉아 있었다."}


def test_there_is_one_for_each_first_language():
    assert packaged_models() == sorted(SENTENCES)


@pytest.mark.parametrize("name", sorted(SENTENCES))
class TestPackagedModel:
    def test_it_is_small(self, name):
        assert sum(path.stat().st_size for path in (PACKAGED_MODELS / name).iterdir()) <= MAX_BYTES

    def test_its_card_says_what_it_is_and_may_be_used_for(self, name):
        model = load_model(PACKAGED_MODELS / name)
        facts = model.training_metadata
        assert facts["language"] == name
        assert not set(facts["license"].replace("-", " ").split()) & set(FORBIDDEN)
        assert facts["text"]
        assert facts["limits"]
        assert facts["perplexity"]["mean"] > 1
        card = (PACKAGED_MODELS / name / "README.md").read_text(encoding="utf-8")
        assert model.model_hash() in card
        assert facts["license"] in card
        assert (
            re.search(r"(^|[\s'\"`])/\w+/", card) is None
        )  # no path of the machine it was made on

    def test_the_readme_has_its_perplexity(self, name):
        mean = load_model(PACKAGED_MODELS / name).training_metadata["perplexity"]["mean"]
        for page, said in (
            ("README.md", f"{mean:.1f} (`{name}`)"),
            ("README.ko.md", f"`{name}` {mean:.1f}"),
        ):
            assert said in (ROOT / page).read_text(encoding="utf-8")

    def test_it_predicts_words_it_has_not_seen_better_than_chance(self, name):
        from elmokit.evaluation.perplexity import perplexity

        model = load_model(PACKAGED_MODELS / name)
        assert model.word_vocab is not None
        text = [sentence.split() for sentence in model.warm_text[:20]]
        assert perplexity(model, text).mean < len(model.word_vocab) / 50

    def test_it_loads_within_two_seconds_and_embeds_raw_text(self, name):
        from elmokit import Embedder

        started = time.thread_time()
        embedder = Embedder.load(name)
        assert time.thread_time() - started < 2
        (vectors,) = embedder.embed([SENTENCES[name]])
        assert vectors.shape[0] == embedder.num_layers == 3
        assert np.isfinite(vectors).all()


def test_none_named_is_english():
    from elmokit import Embedder

    assert Embedder.load().model.model_hash() == Embedder.load("en").model.model_hash()
