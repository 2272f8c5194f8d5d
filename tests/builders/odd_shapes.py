"""Run every kernel over random shapes and values, built with sanitizers.

    python tests/builders/odd_shapes.py address,undefined|thread|none [CASES [SEED [SOURCES]]]

The sanitizer's runtime must be loaded first (`LD_PRELOAD`); it ends the process at the first
finding. Kernels run on threads of their own: of OpenMP's, ThreadSanitizer knows nothing.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from tensor_layers import PackedCharCNN, PackedLinear, PackedLogSumExp, PackedLSTM

from elmokit.bilm.char_cnn import CharTokenEncoder
from elmokit.bilm.config import PADDING_ID, CharCNNConfig
from elmokit.bilm.lstmp import LSTMP, LSTMConfig
from elmokit.bilm.softmax import SampledSoftmax
from elmokit.kernels import build, library
from elmokit.kernels.layers import ScratchBuffers
from elmokit.kernels.library import load_kernels
from elmokit.kernels.training import load_training_kernels
from elmokit.training.fused.char_cnn import encode_tokens
from elmokit.training.fused.lstm import run_fused
from elmokit.training.fused.softmax import training_nlls

KINDS = ("fp32", "bf16", "int8")
STRANGE = (torch.nan, torch.inf, -torch.inf, 3.4e38, -3.4e38, 1e-45, -0.0)


class Draw:
    """Random sizes and values; a few values are not finite, huge or tiny."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def one_of(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def size(self, most):
        """Return a size: often small or next to a power of two."""
        near = 2 ** int(self.rng.integers(most.bit_length())) + int(self.rng.integers(-1, 2))
        return min(max(1, self.one_of((near, int(self.rng.integers(1, most + 1))))), most)

    def values(self, *shape):
        values = torch.from_numpy(self.rng.standard_normal(shape).astype(np.float32))
        if self.rng.random() < 0.3 and values.numel():
            at = torch.from_numpy(self.rng.integers(values.numel(), size=3))
            values.view(-1)[at] = torch.tensor([self.one_of(STRANGE) for _ in range(3)])
        return values


def linear(draw, kernels):
    rows, inner, columns = draw.size(130), draw.size(1200), draw.size(200)
    kind = draw.one_of(KINDS)
    if draw.rng.random() < 0.4:
        weight, bias, columns = draw.values(2, inner, inner), draw.values(2, inner), inner
        rows = draw.size(20)
    else:
        weight, bias = draw.values(columns, inner), draw.values(columns)
    PackedLinear(kernels, weight, bias, kind)(draw.values(rows, inner), torch.empty(rows, columns))


def logsumexp(draw, kernels):
    rows, inner, columns = draw.size(700), draw.size(90), draw.size(300)
    weight, bias = draw.values(columns, inner), draw.values(columns)
    packed, x = PackedLogSumExp(kernels, weight, bias, draw.one_of(KINDS)), draw.values(rows, inner)
    own = torch.from_numpy(draw.rng.integers(-1, columns, rows).astype(np.int32))
    packed(x, draw.values(rows), own)
    packed.with_mean_and_rank(x, draw.values(rows), own)


def char_encoder(draw):
    """Return a character encoder and ids for it."""
    characters, dim = draw.size(50), draw.one_of((2, 4, 6, 16, 30))
    filters = tuple(
        (draw.size(min(characters, 9)), draw.size(90)) for _ in range(int(draw.rng.integers(1, 5)))
    )
    config = CharCNNConfig(
        embedding_dim=dim, filters=filters, num_highway=0,
        activation=draw.one_of(("relu", "tanh")),
    )  # fmt: skip
    encoder = CharTokenEncoder(config, output_dim=7, max_characters=characters)
    ids = np.full((draw.size(70), characters), PADDING_ID, dtype=np.int64)
    lengths = draw.rng.integers(0, characters + 1, len(ids))
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = draw.rng.integers(1, 200, length)
    return encoder, ids, lengths


def char_cnn(draw, kernels):
    encoder, ids, lengths = char_encoder(draw)
    weights = [conv.get_parameter("weight").detach() for conv in encoder.convolutions]
    packed = PackedCharCNN(
        kernels, encoder.char_embedding.weight.detach(),
        [(weight, draw.values(len(weight))) for weight in weights],
        max_characters=ids.shape[1], activation=encoder.config.activation, padding_id=PADDING_ID,
        kind=draw.one_of(KINDS),
    )  # fmt: skip
    packed(ids.astype(np.uint16), lengths, torch.empty(len(ids), packed.num_filters))


def lstm_config(draw, *, multiple=1):
    cell_dim = multiple * draw.size(200 // multiple)
    dim = draw.size(min(140, cell_dim))
    return LSTMConfig(
        cell_dim=cell_dim, projection_dim=draw.one_of((dim, cell_dim)),
        cell_clip=draw.one_of((None, 0.5)), projection_clip=draw.one_of((None, 0.1)),
    )  # fmt: skip


def lstm(draw, kernels):
    config = lstm_config(draw)
    inputs = config.projection_dim
    layer, kind = LSTMP(inputs, config), draw.one_of(KINDS)
    num_rows = np.sort(draw.rng.integers(1, draw.size(40) + 1, draw.size(30)))[::-1].astype("int64")
    packed = PackedLSTM(kernels, layer.weights(), config, kind=kind, buffers=ScratchBuffers())
    x, rows = draw.values(int(num_rows.sum()), inputs), int(num_rows[0])
    cell = packed.pack_cell(draw.values(rows, config.cell_dim))
    kept = np.zeros((len(x), config.projection_dim), dtype=np.float32)
    targets = kept.ctypes.data + kept.strides[0] * np.arange(len(x))
    targets[draw.rng.random(len(x)) < 0.5] = 0
    packed(x, np.ascontiguousarray(num_rows), draw.values(rows, inputs), cell,
           skip=draw.one_of((False, True)), targets=targets.astype(np.int64))  # fmt: skip


def train_lstm(draw, _):
    config = lstm_config(draw, multiple=16)
    rows, steps, inputs = draw.size(60), draw.size(9), draw.size(40)
    layer = LSTMP(inputs, config)
    state = draw.values(rows, config.projection_dim), draw.values(rows, config.cell_dim)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=draw.one_of((False, True))):
        out, _ = run_fused(layer, draw.values(rows, steps, inputs).requires_grad_(), state)
    out.sum().backward()


def train_cnn(draw, _):
    encoder, ids, _ = char_encoder(draw)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=draw.one_of((False, True))):
        out = encode_tokens(encoder, torch.from_numpy(ids))
    out.sum().backward()


def train_softmax(draw, _):
    words, dim, rows = draw.size(300) + 1, draw.size(40), draw.size(90)
    softmax = SampledSoftmax(words, dim, num_samples=draw.size(min(words - 1, 120)))
    ids = torch.from_numpy(draw.rng.integers(1, words, rows))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=draw.one_of((False, True))):
        hidden = draw.values(rows, dim).requires_grad_()
        (loss,) = training_nlls(softmax, [hidden], [ids], generators=[torch.Generator()])
    loss.sum().backward()


def train_rows(draw, _):
    kernels, columns, inner = load_training_kernels(), draw.size(200), draw.size(90)
    dtype = draw.one_of((torch.float32, torch.bfloat16))
    weight = draw.values(columns, inner)
    kernels.pack(weight, dtype, transposed=draw.one_of((False, True)))
    kernels.column_sums(weight.to(dtype), draw.one_of((None, draw.values(columns))))
    places = torch.from_numpy(draw.rng.integers(0, columns, 9))
    kernels.scatter_rows(weight, places, draw.values(9, inner))


CASES = (linear, logsumexp, char_cnn, lstm, train_lstm, train_cnn, train_softmax, train_rows)


def main(sanitizer, num_cases="80", seed="0", sources=str(build.SOURCE_DIR)):
    """Run the cases; print how many ran of each kind."""
    build.SOURCE_DIR = Path(sources)
    if sanitizer != "none":
        build.FLAGS = (
            *(flag for flag in build.FLAGS if flag != "-O3"), "-O1", "-g",
            f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all",
        )  # fmt: skip
    library._share_threads = lambda _: None
    assert load_kernels() is not None
    assert load_training_kernels() is not None
    ran = dict.fromkeys((case.__name__ for case in CASES), 0)
    for number in range(int(num_cases)):
        case, draw = CASES[number % len(CASES)], Draw([int(seed), number])
        threads = draw.one_of((1, 2, 3, 5))
        torch.get_num_threads = lambda threads=threads: threads
        print(f"{case.__name__} {number}", file=sys.stderr, flush=True)
        case(draw, load_kernels())
        ran[case.__name__] += 1
    print(ran)


if __name__ == "__main__":
    main(*sys.argv[1:])
