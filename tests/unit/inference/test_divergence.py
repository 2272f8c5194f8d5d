"""Whether the model amplifies rounding on a text, and the warning about it."""

import pytest

from ...builders.embedding_models import toy_model

MACHINE_LIKE = {"one sign": ["-"] * 120, "one word": ["the"] * 400}
TEXT = (
    "The old ferry crossed the river twice a day , once in the morning and once before dark . "
    "Nobody in the village could say who had built it , but everybody knew the man who kept it . "
    "His father had taught him to read the water , and on windy days he sang so that the horses "
    "would stand still . When the bridge was finished , the people came to see the last crossing ."
)
NATURAL = TEXT.split()


@pytest.fixture
def new_embedder():
    """Return an embedder of the packaged English model that has not warned yet."""
    import elmokit

    return lambda **options: elmokit.Embedder.load("en", num_threads=1, **options)


def warnings_of(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name.endswith("inference.divergence")]


@pytest.mark.parametrize("words", MACHINE_LIKE.values(), ids=MACHINE_LIKE)
def test_text_on_which_vectors_diverge_is_warned_of_once(new_embedder, caplog, words):
    embedder = new_embedder()
    for _ in range(2):
        embedder.embed([NATURAL, words])
    (message,) = warnings_of(caplog)
    assert f"{len(words)} words" in message


@pytest.mark.parametrize("words", [NATURAL * 5, ["-"] * 20], ids=["natural", "short"])
def test_other_text_is_not_warned_of(new_embedder, caplog, words):
    new_embedder().embed([words] * 3)
    assert warnings_of(caplog) == []


def test_a_model_to_which_all_words_are_alike_is_not_slowed_down(monkeypatch):
    from elmokit.inference import divergence
    from elmokit.inference.frozen_bilm import FrozenBiLM

    bilm = FrozenBiLM(toy_model())
    tried = []
    monkeypatch.setattr(
        divergence, "amplified", lambda engine, inputs: tried.append(len(inputs)) or 0.0
    )
    for _ in range(400):
        bilm.encode([["a"] * 498])
    allowed = divergence.FREE_TOKENS + divergence.TRIED_SHARE * 400 * 500
    assert allowed - 500 <= sum(tried) <= allowed
