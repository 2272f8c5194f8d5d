"""`ElmoWords` in models that sentence-transformers itself saves and loads."""

import numpy as np
import pytest
import torch

from elmokit.embed.embedder import Embedder

from ...builders.embedding_models import toy_model

st = pytest.importorskip(
    "sentence_transformers", reason="extra `sentence-transformers` is not installed"
)

from sentence_transformers.sentence_transformer.modules import Pooling  # noqa: E402

from elmokit.integrations.sentence_transformers import ElmoWords  # noqa: E402

TEXTS = ["I sat by the bank of the river", "배 를 타고 갔다", "a", "the bank", ""]


@pytest.fixture(scope="module", params=[False, True], ids=["characters", "words"])
def model(request):
    return toy_model(words=request.param)


def sentence_model(words, pooling="mean"):
    pool = Pooling(words.get_embedding_dimension(), pooling_mode=pooling)
    return st.SentenceTransformer(modules=[words, pool], device="cpu")


@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize(
    ("layers", "ours"), [("average", "average"), ("top", "top"), ("layer0", 0)]
)
def test_it_equals_embed_sentences(model, layers, ours, pooling):
    built = sentence_model(ElmoWords(model, layers=layers), pooling)
    found = built.encode(TEXTS, batch_size=3)
    expected = Embedder(model).embed_sentences(TEXTS, layers=ours, pooling=pooling)
    assert np.abs(found - expected).max() < 1e-6
    assert not built.encode(["", ""]).any()


def test_its_own_loader_loads_what_it_saved(model, tmp_path):
    words = ElmoWords(model, layers="mix", max_seq_length=3)
    with torch.no_grad():
        words.elmo.scalar_mixes[0].mix_weights.copy_(torch.tensor([1.0, -1.0, 0.5]))
        words.elmo.scalar_mixes[0].gamma.fill_(2.0)
    built = sentence_model(words)
    built.save(str(tmp_path / "saved"))
    with pytest.raises(ValueError, match="trust_remote_code"):
        st.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    loaded = st.SentenceTransformer(str(tmp_path / "saved"), device="cpu", trust_remote_code=True)
    assert np.array_equal(loaded.encode(TEXTS), built.encode(TEXTS))
    assert loaded.max_seq_length == 3
    loaded.save(str(tmp_path / "again"))
    again = st.SentenceTransformer(str(tmp_path / "again"), device="cpu", trust_remote_code=True)
    assert np.array_equal(again.encode(TEXTS), built.encode(TEXTS))


@pytest.mark.parametrize("trainable_bilm", [False, True])
def test_a_loss_trains_the_mixture_and_the_bilm_on_request(model, trainable_bilm):
    words = ElmoWords(model, layers="mix", trainable_bilm=trainable_bilm)
    built = sentence_model(words)
    loss = st.sentence_transformer.losses.CosineSimilarityLoss(built)
    features = [built.preprocess(TEXTS[:2]), built.preprocess(TEXTS[2:4])]
    loss(features, torch.tensor([1.0, 0.0])).backward()
    assert words.elmo.scalar_mixes[0].mix_weights.grad.any()
    grads = [weight.grad is not None for weight in words.bilm.parameters()]
    assert all(grads) if trainable_bilm else not any(grads)
