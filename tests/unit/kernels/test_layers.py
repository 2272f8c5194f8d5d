import numpy as np
import pytest
import torch
from torch.nn import functional

from elmokit.bilm.char_cnn import CharTokenEncoder, Highway
from elmokit.bilm.config import PADDING_ID, CharCNNConfig
from elmokit.bilm.lstmp import LSTMP, LSTMConfig
from elmokit.kernels.layers import ScratchBuffers
from elmokit.kernels.library import load_kernels
from elmokit.kernels.packed_matrix import MAX_INT8_INNER, pack_matrix

from ...builders.processors import PROCESSORS, kernels_of
from ...builders.tensor_layers import PackedCharCNN, PackedLinear, PackedLSTM

ERRORS = {"fp32": 2e-6, "bf16": 1e-2, "int8": 4e-2}
"""Largest difference to the exact product, as a share of its largest value."""


@pytest.fixture(params=list(PROCESSORS), scope="module")
def kernels(request, tmp_path_factory):
    """The library as other processors have it, too."""
    loaded = load_kernels()
    other = kernels_of(request.param, loaded, "inference", tmp_path_factory)
    is_narrower = other.vector_length < loaded.vector_length
    assert other.quick_kinds == ({"fp32"} if is_narrower else loaded.quick_kinds)
    return other


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(1, 1, 1), (5, 7, 3), (100, 131, 200), (97, 2100, 70)]
)
def test_linear_is_the_product(kernels, threads, kind, rows, inner, columns):
    x, weight, bias = normal(rows, inner), normal(columns, inner, seed=1), normal(columns, seed=2)
    linear = PackedLinear(kernels, weight, bias, kind)
    out = linear(x, torch.empty(rows, columns))
    exact = x.double() @ weight.double().T + bias.double()
    assert (out - exact).abs().max() <= ERRORS[kind] * max(1.0, float(exact.abs().max()))


@pytest.mark.parametrize("threads", [1], indirect=True)
@pytest.mark.parametrize("kind", ["fp32", "bf16", "int8"])
def test_a_row_has_the_same_bits_in_any_company_on_any_threads(kernels, threads, kind):
    x, weight, bias = normal(50, 300), normal(130, 300, seed=1), normal(130, seed=2)
    linear = PackedLinear(kernels, weight, bias, kind)
    whole = linear(x, torch.empty(50, 130))
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        for rows in (slice(0, 1), slice(7, 12), slice(20, 50)):
            part = linear(x[rows].contiguous(), torch.empty(len(x[rows]), 130))
            assert torch.equal(part, whole[rows])


@pytest.mark.parametrize("kind", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("dim", [16, 19])
def test_what_is_not_a_number_stays_visible(kernels, kind, dim):
    x = normal(3, dim)
    x[1, dim - 3] = torch.nan
    weight, bias = normal(2, dim, dim, seed=1), torch.zeros(2, dim)
    linear = PackedLinear(kernels, weight[0], bias[0], kind)
    highway = PackedLinear(kernels, weight, bias, kind)
    for out in (linear(x, torch.empty(3, dim)), highway(x, torch.empty(3, dim))):
        assert out[1].isnan().all()
        assert not out[[0, 2]].isnan().any()


def test_an_int8_product_whose_sum_would_overflow_is_refused(kernels):
    weight = torch.ones(1, MAX_INT8_INNER + 1)
    with pytest.raises(ValueError, match=r"int8.*66,311.*\(1, 66,312\)"):
        pack_matrix(kernels, weight.numpy(), "int8")
    assert pack_matrix(kernels, weight.numpy(), "bf16").num_groups == 33156


@pytest.mark.parametrize("dim", [5, 32, 100])
@torch.no_grad()
def test_highway_equals_the_module(kernels, threads, dim):
    highway = Highway(dim)
    highway.reset_parameters(torch.Generator().manual_seed(0))
    weight = torch.stack([highway.transform.weight, highway.carry.weight])
    bias = torch.stack([highway.transform.bias, highway.carry.bias])
    x = normal(23, dim)
    out = PackedLinear(kernels, weight, bias, "fp32")(x, torch.empty(23, dim))
    assert (out - highway(x)).abs().max() <= 2e-6


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("embedding_dim", [5, 16])
@torch.no_grad()
def test_char_cnn_equals_the_module(kernels, threads, activation, embedding_dim):
    filters = ((1, 3), (2, 70), (5, 64), (9, 20))
    config = CharCNNConfig(
        embedding_dim=embedding_dim, filters=filters, activation=activation, num_highway=0
    )
    encoder = CharTokenEncoder(config, output_dim=157, max_characters=12)
    encoder.reset_parameters(torch.Generator().manual_seed(0))
    rng = np.random.default_rng(0)
    ids = np.full((75, 12), PADDING_ID, dtype=np.uint16)
    lengths = rng.integers(0, 13, len(ids))
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = rng.integers(1, 200, length)
    for kind, error in (("fp32", 2e-6), ("bf16", 2e-2), ("int8", 2e-2)):
        packed = PackedCharCNN(
            kernels, encoder.char_embedding.weight,
            [(conv.weight, conv.bias) for conv in encoder.convolutions],
            max_characters=12, activation=activation, padding_id=PADDING_ID, kind=kind,
        )  # fmt: skip
        out = packed(ids, lengths, torch.empty(len(ids), 157))
        expected = encoder(torch.from_numpy(ids.astype(np.int64)))
        assert (out - expected).abs().max() <= error


@pytest.mark.parametrize("clips", [(0.5, 0.1), (None, None)])
@pytest.mark.parametrize(("cell_dim", "dim"), [(20, 6), (70, 70), (200, 130)])
@torch.no_grad()
def test_lstm_equals_the_module_while_rows_end(kernels, threads, cell_dim, dim, clips):
    config = LSTMConfig(
        cell_dim=cell_dim, projection_dim=dim, cell_clip=clips[0], projection_clip=clips[1]
    )
    layer = LSTMP(dim, config)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    layer.bias.copy_(normal(4 * cell_dim, seed=3))
    num_rows = np.array([9, 9, 7, 2, 1, *[1] * 40], dtype=np.int64)
    x = normal(int(num_rows.sum()), dim, seed=4)
    hidden, cell = 0.1 * normal(9, dim, seed=5), normal(9, cell_dim, seed=6)
    packed = PackedLSTM(kernels, layer.weights(), config, kind="fp32", buffers=ScratchBuffers())
    packed_hidden, packed_cell = hidden.clone(), packed.pack_cell(cell)
    targets = np.zeros(len(x), dtype=np.int64)
    kept = np.zeros((len(x), dim), dtype=np.float32)
    targets[3:20] = kept.ctypes.data + 4 * dim * np.arange(3, 20)
    out = packed(x, num_rows, packed_hidden, packed_cell, skip=True, targets=targets)
    start, expected = 0, []
    for n in num_rows.tolist():
        gate_in = functional.linear(x[start : start + n], layer.input_weight, layer.gate_bias())
        hidden[:n], cell[:n] = layer.step(gate_in, hidden[:n], cell[:n])
        expected.append(hidden[:n] + x[start : start + n])
        start += n
    assert (out - torch.cat(expected)).abs().max() <= 2e-6
    assert (packed_hidden - hidden).abs().max() <= 2e-6
    largest = max(1.0, float(cell.abs().max()))  # cells without a clip grow
    assert (packed.unpack_cell(packed_cell) - cell).abs().max() <= 2e-6 * largest
    assert (kept[3:20] == out[3:20].numpy()).all()
    assert not kept[:3].any()
    assert not kept[20:].any()
