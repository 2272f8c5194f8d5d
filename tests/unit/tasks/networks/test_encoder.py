"""The sentence encoder, against torch's own layers."""

import pytest
import torch

from elmokit.tasks.networks.encoder import SentenceEncoder, run_packed

from ....builders.task_models import padded_texts

TEXTS, PADDED, MASK = padded_texts(5, 0, 2, 1, dim=4)
CELLS = pytest.mark.parametrize("cell", ["lstm", "gru"])


def build(cell, hidden_dims):
    encoder = SentenceEncoder(4, hidden_dims, cell=cell)
    encoder.reset_parameters(torch.Generator().manual_seed(0))
    return encoder.double().eval()


@CELLS
def test_equals_torchs_own_layers_on_each_sentence(cell):
    encoder = build(cell, (3, 2))
    out = encoder(PADDED, MASK)
    assert out.shape == (4, 5, encoder.output_dim)
    for row, words in enumerate(TEXTS):
        if len(words):
            expected = words.unsqueeze(0)
            for layer in encoder.layers:
                expected = layer(expected)[0]
            torch.testing.assert_close(out[row, : len(words)], expected[0])
        assert (out[row, len(words) :] == 0).all()


@CELLS
def test_packed_sequences_as_a_gpu_reads_them_give_the_same_numbers(cell):
    results = []
    for packed in (True, False):
        encoder = build(cell, (3,))
        x = PADDED.nan_to_num(nan=7.0).requires_grad_()
        if packed:
            out = run_packed(encoder.layers[0], x, MASK.sum(dim=1).clamp(min=1))
            out = out.masked_fill(~MASK.unsqueeze(2), 0)
        else:
            out = encoder(x, MASK)
        out.square().sum().backward()
        assert (x.grad[~MASK] == 0).all()
        assert x.grad[MASK].abs().amin() > 0
        results.append([out.detach(), x.grad, *(p.grad for p in encoder.parameters())])
    torch.testing.assert_close(*results)
