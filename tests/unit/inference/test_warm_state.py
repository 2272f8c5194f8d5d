"""Reading order and the warm start state."""

import pytest
import torch


@pytest.fixture
def model():
    from elmokit.bilm.bilm import BiLMConfig
    from elmokit.bilm.char_cnn import CharCNNConfig
    from elmokit.bilm.lstmp import LSTMConfig
    from elmokit.weights.model_dir import PretrainedBiLM

    text = [f"word{k} stands {'here ' * (k % 4)}." for k in range(20)]
    model = PretrainedBiLM(
        BiLMConfig(
            char_cnn=CharCNNConfig(filters=((1, 8), (2, 8)), num_highway=1),
            lstm=LSTMConfig(cell_dim=12, projection_dim=6),
        ),
        warm_text=text,
    )
    return model.eval()


def test_each_direction_ends_with_the_boundary_that_it_only_predicts():
    from elmokit.inference.warm_state import reading_order

    assert reading_order("forward", ["a", "b"]) == ["<S>", "a", "b", "</S>"]
    assert reading_order("backward", ["a", "b"]) == ["</S>", "b", "a", "<S>"]


def test_distinct_words_are_encoded_once(model):
    from elmokit.inference.warm_state import distinct_vectors

    with torch.no_grad():
        vectors, index = distinct_vectors(model, [["a", "b", "a"], ["b"]])
        alone = model.encode_tokens(model.encode_words(["b"]))
    assert index.tolist() == [[0, 1, 0], [1, -1, -1]]
    torch.testing.assert_close(vectors[1], alone[0])


def test_distinct_words_go_through_the_token_layer_in_chunks(model, monkeypatch):
    from elmokit.inference import warm_state as reading

    words = [f"word{k}" for k in range(50)]
    with torch.no_grad():
        whole, _ = reading.distinct_vectors(model, [words])
        sizes = []
        encode = model.encode_tokens
        monkeypatch.setattr(reading, "CHUNK", 16)
        monkeypatch.setattr(
            model, "encode_tokens", lambda ids: (sizes.append(len(ids)), encode(ids))[1]
        )
        chunked, index = reading.distinct_vectors(model, [words])
    assert sizes == [16, 16, 16, 2]
    assert index.tolist() == [list(range(50))]
    torch.testing.assert_close(chunked, whole)


def test_the_warm_state_is_the_mean_after_the_sentences_of_carried_streams(model):
    from elmokit.bilm.bilm import BiLMState
    from elmokit.inference.warm_state import NUM_STREAMS, reading_order, warm_state

    rounds = [line.split() for line in model.warm_text][: 2 * NUM_STREAMS]
    warm = warm_state(model)
    for axis, direction in enumerate(("forward", "backward")):
        hidden, cell = [], []
        for stream in range(NUM_STREAMS):
            state = BiLMState.zeros(model.config.lstm, 1).direction(direction)
            for words in (rounds[stream], rounds[NUM_STREAMS + stream]):
                read = reading_order(direction, words)[:-1]
                with torch.no_grad():
                    x = model.encode_tokens(model.encode_words(read)).unsqueeze(0)
                    _, state = model.run_direction(direction, x, state=state)
            hidden.append(state[0])
            cell.append(state[1])
        torch.testing.assert_close(warm.hidden[:, axis], torch.stack(hidden).mean(0))
        torch.testing.assert_close(warm.cell[:, axis], torch.stack(cell).mean(0))
    assert warm.num_rows == 1


def test_few_sentences_are_enough(model):
    from elmokit.inference.warm_state import warm_state

    model.warm_text = ("only one .",)
    assert bool(warm_state(model).cell.isfinite().all())


def test_a_model_without_neutral_text_takes_the_packages_own_and_says_so(model, caplog):
    from elmokit.inference.warm_state import warm_text

    model.warm_text = ()
    assert len(warm_text(model)) > 20
    assert "package's own" in caplog.text


def test_training_mode_is_put_back(model):
    from elmokit.inference.warm_state import warm_state

    model.train()
    warm_state(model)
    assert model.training
