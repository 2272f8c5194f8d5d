import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.bilm.bilm import BiLMState
from elmokit.bilm.config import LSTMConfig
from elmokit.errors import InputError
from elmokit.inference import kernel_backend as packed
from elmokit.inference import numpy_backend
from elmokit.inference.engine import _cut
from elmokit.inference.layers_and_states import check_layers

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


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(1, 30))
def test_chunks_hold_every_position_once_and_as_many_as_there_is_room_for(lengths, most):
    lengths.sort(reverse=True)
    chunks = list(_cut(np.array(lengths, dtype=np.int64), most))
    read = [
        (int(t), int(row)) for _, rows, steps in chunks for row, t in zip(rows, steps, strict=True)
    ]
    assert read == [(t, row) for t in range(9) for row, n in enumerate(lengths) if t < n]
    for running, rows, _ in chunks:
        assert running.sum() == len(rows) <= max(most, running[0])
        assert list(running) == sorted(running, reverse=True)
    for running, _, _ in chunks[:-1]:
        assert (len(running) + 1) * running[0] > most


@pytest.mark.parametrize("other", [{"num_layers": 1}, {"cell_dim": 25}, {"projection_dim": 7}])
def test_a_state_of_another_model_is_refused(other):
    lstm = LSTMConfig(**{"cell_dim": 24, "projection_dim": 8, **other})
    with pytest.raises(InputError, match=r"another model: expected .*2, 2, 8, 24"):
        run_engine(toy_model(), [["bank"]], state=BiLMState.zeros(lstm, 1))


def test_only_layers_that_a_model_has_can_be_chosen():
    choices = (0, np.int64(2), "all", "top", "average")
    assert [check_layers(choice, 3) for choice in choices] == list(choices)
    for wrong in (-1, 3, True, 1.0, "mean", None):
        with pytest.raises(InputError, match=rf"0 .* to 2 .*got {wrong!r}"):
            check_layers(wrong, 3)
