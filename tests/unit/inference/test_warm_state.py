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


def test_the_warm_state_is_the_mean_after_the_sentences_of_carried_streams(model):
    from elmokit.bilm.bilm import BiLMState
    from elmokit.inference.frozen_bilm import FrozenBiLM
    from elmokit.inference.warm_state import NUM_STREAMS, warm_state

    rounds = [line.split() for line in model.warm_text][: 2 * NUM_STREAMS]
    warm = warm_state(FrozenBiLM(model), model.warm_text)
    for axis, direction in enumerate(("forward", "backward")):
        hidden, cell = [], []
        for stream in range(NUM_STREAMS):
            state = BiLMState.zeros(model.config.lstm, 1).direction(direction)
            for words in (rounds[stream], rounds[NUM_STREAMS + stream]):
                read = ["<S>", *words] if direction == "forward" else ["</S>", *reversed(words)]
                with torch.no_grad():
                    x = model.encode_tokens(model.encode_words(read)).unsqueeze(0)
                    _, state = model.run_direction(direction, x, state=state)
            hidden.append(state[0])
            cell.append(state[1])
        for ours, theirs in ((warm.hidden, hidden), (warm.cell, cell)):
            mean = torch.stack(theirs).mean(0)
            torch.testing.assert_close(torch.from_numpy(ours[:, axis].copy()), mean)
    assert warm.num_rows == 1
