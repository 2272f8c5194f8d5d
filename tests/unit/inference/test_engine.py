import numpy as np
import pytest
import torch

from elmokit.bilm.bilm import BiLMState
from elmokit.inference import kernel_backend as packed
from elmokit.inference import numpy_backend

from ...builders.embedding_models import (
    largest_difference,
    plain_layers,
    random_sentences,
    run_engine,
    toy_model,
)

MODELS = {
    "two layers": {},
    "one layer": {"num_layers": 1},
    "three layers": {"num_layers": 3},
    "no projection": {"cell_dim": 8},
    "word input": {"words": True},
}


@pytest.fixture(params=list(MODELS))
def model(request, backend):
    return toy_model(**MODELS[request.param])


def test_equals_the_plain_network(model):
    sentences = random_sentences(37)
    expected, expected_state = plain_layers(model, sentences)
    out = run_engine(model, sentences)
    assert largest_difference(out.vectors, expected) <= 2e-6
    assert (out.state.hidden - expected_state.hidden).abs().max() <= 2e-6
    assert (out.state.cell - expected_state.cell).abs().max() <= 2e-6
    assert all(array.dtype == np.float32 for array in out.vectors)


def test_rows_go_on_from_their_state(model):
    batches = [random_sentences(n, seed=n) for n in (3, 2, 5, 0, 4)]
    state = None
    plain_state = BiLMState.zeros(model.config.lstm, 5)
    for batch in batches:
        out = run_engine(model, batch, state=state)
        state = out.state
        if batch:
            expected, new = plain_layers(model, batch, state=plain_state)
            hidden, cell = plain_state.hidden.clone(), plain_state.cell.clone()
            hidden[:, :, : len(batch)], cell[:, :, : len(batch)] = new.hidden, new.cell
            plain_state = BiLMState(hidden, cell)
            assert largest_difference(out.vectors, expected) <= 2e-6
        for result, plain in ((state.hidden, plain_state.hidden), (state.cell, plain_state.cell)):
            # cells reach the clip (3), and either network's roundings add up over the batches
            torch.testing.assert_close(result, plain[:, :, : state.num_rows], atol=2e-6, rtol=2e-6)
    assert state.num_rows == 5


def test_chunks_of_any_size_give_the_same_bits(model, monkeypatch):
    sentences = [*random_sentences(9), ["bank"] * 60]
    whole = run_engine(model, sentences)
    width = model.forward_layers[0].input_weight.shape[0]
    for positions in (1, 7, 30):
        monkeypatch.setattr(packed, "MAX_POSITIONS", positions)
        monkeypatch.setattr(numpy_backend, "MAX_GATE_VALUES", positions * width)
        chunked = run_engine(model, sentences)
        assert largest_difference(whole.vectors, chunked.vectors) == 0
        assert torch.equal(whole.state.hidden, chunked.state.hidden)
        assert torch.equal(whole.state.cell, chunked.state.cell)


def test_layer_choices_are_slices_and_means_of_all(model):
    sentences = random_sentences(11)
    everything = run_engine(model, sentences).vectors
    for k in range(model.num_layers):
        one = run_engine(model, sentences, layers=k).vectors
        assert largest_difference(one, [array[k] for array in everything]) == 0
    top = run_engine(model, sentences, layers="top").vectors
    assert largest_difference(top, [array[-1] for array in everything]) == 0
    average = run_engine(model, sentences, layers="average").vectors
    assert largest_difference(average, [array.mean(axis=0) for array in everything]) <= 1e-6
