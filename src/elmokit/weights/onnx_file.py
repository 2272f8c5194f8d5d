"""Writing a model as ONNX, for other languages and runtimes: character ids in, layers out.

The graph has one input and two outputs, all with dynamic numbers of sentences and positions:

- ``ids``, int64 (B, T, C), or (B, T) for word-input models: sentences with their boundary tokens,
  0 where padded, as `elmokit.text.char_vocab.CharVocab.encode` returns them;
- ``layers``, float32 (L, B, T, 2D), and ``mask``, bool (B, T), as in `BiLMOutput`.

Every sentence starts from the zero state. The recurrence is ONNX's ``Scan``: its ``LSTM`` has
neither projection nor clipping. The cell is that of `elmokit.bilm.lstmp`, which names its other
spellings.
"""

import copy
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.bilm import BiLM
from elmokit.bilm.char_cnn import CharTokenEncoder, Highway
from elmokit.bilm.lstmp import LSTMP
from elmokit.errors import FormatError, InputError, MissingExtraError
from elmokit.files.atomic import atomic_file
from elmokit.files.damage import damage
from elmokit.version import __version__
from elmokit.weights.model_dir import PretrainedBiLM
from elmokit.weights.storage import Storage, pack, round_parameters

OPSET = 18
FLOAT, INT64, BOOL = 1, 7, 9
"""Of `onnx.TensorProto`."""
INPUT, LAYERS, MASK = "ids", "layers", "mask"
PRODUCER = "elmokit"
ADVICE = "Export the model again: `elmokit convert MODEL FILE.onnx`."


def write_onnx(model: BiLM, path: str | PathLike[str], *, dtype: Storage = "float32") -> None:
    """Write the biLM, without its softmax, as one ONNX file.

    A `Storage` below float32 makes the file smaller by rounding the weights, as
    `PretrainedBiLM.round_to` does. The runtime computes in fp32 in every case. Metadata of
    the file name the model's hash and tokenizer, how it normalizes words and cuts long ones, and
    the version of elmokit.
    """
    if model.config.lexicon is not None:
        raise InputError(
            "ONNX is written for models of bytes; this one reads characters and words by lists "
            "(config.json, `lexicon`)."
        )
    onnx = _imported("onnx")
    reading = model.config.char_vocab
    made = {"normalization": reading.normalization, "truncation": reading.truncation}
    if isinstance(model, PretrainedBiLM):
        made |= {"model_hash": model.model_hash(), "tokenizer": str(model.tokenizer)}
    if dtype != "float32":
        model = copy.deepcopy(model)
        round_parameters(model, dtype)
    graph = _Graph(dtype)
    with torch.no_grad():
        outputs = _network(graph, model)
    shape: list[str | int] = ["sentences", "positions"]
    if model.config.char_cnn is not None:
        shape.append(model.config.char_vocab.max_characters)
    make = onnx.helper.make_tensor_value_info
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            "elmo",
            [make(INPUT, INT64, shape)],
            [
                make(LAYERS, FLOAT, [model.num_layers, *shape[:2], model.output_dim]),
                make(MASK, BOOL, shape[:2]),
            ],
            graph.initializers,
        ),
        producer_name=PRODUCER,
        producer_version=__version__,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=10,  # of opset 18's time: newer ones are refused by older runtimes
    )
    for name, output in zip((LAYERS, MASK), outputs, strict=True):
        proto.graph.node.append(onnx.helper.make_node("Identity", [output], [name]))
    onnx.helper.set_model_props(proto, made | {"dtype": dtype})
    onnx.checker.check_model(proto)
    with atomic_file(Path(path)) as temp_path:
        temp_path.write_bytes(proto.SerializeToString())


def read_onnx_metadata(path: Path) -> dict[str, str]:
    """Return what a file written by `write_onnx` says of its model."""
    proto, data = _imported("onnx").ModelProto(), path.read_bytes()
    with damage(path, ADVICE, what="damaged, or not an ONNX file"):
        proto.ParseFromString(data)
    if proto.producer_name != PRODUCER:
        raise FormatError(f"{path}: an ONNX file that elmokit did not write. {ADVICE}")
    written = {prop.key: prop.value for prop in proto.metadata_props}
    return {"elmokit_version": proto.producer_version, **written}


def run_onnx(path: str | PathLike[str], ids: Tensor) -> Tensor:
    """Return the layers (L, B, T, 2D) that ONNX Runtime computes for ids, on the CPU."""
    runtime = _imported("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run([LAYERS], {INPUT: ids.long().numpy()})[0])


def _imported(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError as error:
        raise MissingExtraError(library, extra="onnx") from error


class _Graph:
    """Nodes and constants of a graph, or of the body of a `Scan`, which may use outer names."""

    def __init__(self, dtype: Storage, *, prefix: str = "") -> None:
        self.dtype: Storage = dtype
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._prefix = prefix

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add an operator; return the name of its output, or a list of names."""
        from onnx import helper

        names = [f"{self._prefix}{kind}_{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values: np.ndarray | Tensor | list[int]) -> str:
        """Add a constant as it is; lists are int64."""
        from onnx import numpy_helper

        array = values.numpy() if isinstance(values, Tensor) else np.asarray(values)
        name = f"{self._prefix}constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def weight(self, weight: Tensor) -> str:
        """Add a rounded weight in the storage type, and return its fp32 values."""
        if self.dtype == "float32" or weight.dim() < 2:
            return self.constant(weight.float())
        stored = list(pack({"weight": weight}, self.dtype).values())
        values = self.add("Cast", self.constant(stored[0]), to=FLOAT)
        if self.dtype == "float16":
            return values
        # not DequantizeLinear: runtimes fuse it with products, and round the other factor, too
        scale = stored[1].view(-1, *[1] * (weight.dim() - 1))
        return self.add("Mul", values, self.constant(scale))

    def linear(self, x: str, weight: Tensor, bias: Tensor | None = None) -> str:
        """Return x W^T + b: (…, X) -> (…, Y)."""
        product = self.add("MatMul", x, self.add("Transpose", self.weight(weight), perm=[1, 0]))
        return product if bias is None else self.add("Add", product, self.constant(bias))

    def clip(self, x: str, bound: float | None) -> str:
        """Limit absolute values."""
        if bound is None:
            return x
        limits = (self.constant(torch.tensor(limit)) for limit in (-bound, bound))
        return self.add("Clip", x, *limits)


def _network(graph: _Graph, model: BiLM) -> tuple[str, str]:
    """Add the whole network; return the names of layers and mask."""
    zero, last = graph.constant(np.array(0)), graph.constant([2])
    mask = graph.add("Greater", INPUT, zero)
    if model.config.char_cnn is not None:
        mask = graph.add("Greater", graph.add("ReduceMax", INPUT, last, keepdims=0), zero)
    counted = graph.add("Cast", mask, to=INT64)  # (B, T)
    lengths = graph.add("ReduceSum", counted, graph.constant([1]), keepdims=0)
    keep = graph.add("Unsqueeze", graph.add("Cast", mask, to=FLOAT), last)  # (B, T, 1)
    tokens = graph.add("Mul", _tokens(graph, model), keep)  # (B, T, D)
    stacks = []
    for layers, is_forward in ((model.forward_layers, True), (model.backward_layers, False)):
        x = tokens if is_forward else _reversed(graph, tokens, lengths)
        outputs = []
        for index, layer in enumerate(layers):
            assert isinstance(layer, LSTMP)
            out = _lstm(graph, layer, x, keep)
            if index > 0 and model.config.lstm.skip_connections:
                out = graph.add("Add", out, x)
            outputs.append(out if is_forward else _reversed(graph, out, lengths))
            x = out
        stacks.append(outputs)
    pairs = [(tokens, tokens), *zip(*stacks, strict=True)]
    joined = [graph.add("Concat", *pair, axis=2) for pair in pairs]
    axis = graph.constant([0])
    layers = graph.add("Concat", *(graph.add("Unsqueeze", layer, axis) for layer in joined), axis=0)
    return layers, mask


def _tokens(graph: _Graph, model: BiLM) -> str:
    """Return the token layer's vectors (B, T, D)."""
    encoder = model.token_encoder
    if not isinstance(encoder, CharTokenEncoder):
        return graph.add("Gather", graph.weight(encoder.get_parameter("embedding.weight")), INPUT)
    flat = graph.add("Reshape", INPUT, graph.constant([-1, encoder.max_characters]))  # (U, C)
    characters = graph.add("Gather", graph.weight(encoder.char_embedding.weight), flat)
    characters = graph.add("Transpose", characters, perm=[0, 2, 1])  # (U, E, C)
    maxima = []
    for convolution in encoder.convolutions:
        assert isinstance(convolution, torch.nn.Conv1d)
        assert convolution.bias is not None
        weights = graph.weight(convolution.weight), graph.constant(convolution.bias)
        answers = graph.add("Conv", characters, *weights)  # (U, filters, windows)
        maxima.append(graph.add("ReduceMax", answers, graph.constant([2]), keepdims=0))
    x = graph.add("Concat", *maxima, axis=1)  # (U, F)
    x = graph.add("Relu" if encoder.config.activation == "relu" else "Tanh", x)
    unit = graph.constant(torch.ones(()))
    for highway in encoder.highways:
        assert isinstance(highway, Highway)
        gate = graph.add("Sigmoid", graph.linear(x, highway.carry.weight, highway.carry.bias))
        change = graph.add(
            "Relu", graph.linear(x, highway.transform.weight, highway.transform.bias)
        )
        carried = graph.add("Mul", graph.add("Sub", unit, gate), x)
        x = graph.add("Add", graph.add("Mul", gate, change), carried)
    if encoder.projection is not None:
        x = graph.linear(x, encoder.projection.weight, encoder.projection.bias)
    sizes = graph.add("Shape", INPUT, end=2)
    dim = graph.constant([model.config.lstm.projection_dim])
    return graph.add("Reshape", x, graph.add("Concat", sizes, dim, axis=0))


def _reversed(graph: _Graph, x: str, lengths: str) -> str:
    """Reverse the real positions of each sentence: (B, T, D)."""
    return graph.add("ReverseSequence", x, lengths, batch_axis=0, time_axis=1)


def _lstm(graph: _Graph, layer: LSTMP, x: str, keep: str) -> str:
    """Return the outputs of a layer: x (B, T, D), keep (B, T, 1) -> (B, T, D)."""
    from onnx import helper

    config, weights = layer.config, layer.weights()
    products = graph.linear(x, weights.input, weights.bias)  # (B, T, 4H)
    # the body of the scan may use names of the outer graph, such as these weights
    recurrent = graph.add("Transpose", graph.weight(weights.recurrent), perm=[1, 0])
    projection = None
    if weights.projection is not None:
        projection = graph.add("Transpose", graph.weight(weights.projection), perm=[1, 0])
    body = _Graph("float32", prefix=f"{recurrent}_")
    gates = body.add("Add", "gates_in", body.add("MatMul", "hidden", recurrent))
    i, f, g, o = body.add("Split", gates, outputs=4, axis=1, num_outputs=4)
    remembered = body.add("Mul", body.add("Sigmoid", f), "cell")
    new = body.add("Mul", body.add("Sigmoid", i), body.add("Tanh", g))
    cell = body.clip(body.add("Add", remembered, new), config.cell_clip)
    hidden = body.add("Mul", body.add("Sigmoid", o), body.add("Tanh", cell))
    if projection is not None:
        hidden = body.clip(body.add("MatMul", hidden, projection), config.projection_clip)
    out = body.add("Mul", hidden, "keep")  # padding follows all real positions
    value = helper.make_tensor_value_info
    dims = {"hidden": config.projection_dim, "cell": config.cell_dim}
    scan = helper.make_graph(
        body.nodes,
        "step",
        [
            *(value(name, FLOAT, ["sentences", dim]) for name, dim in dims.items()),
            value("gates_in", FLOAT, ["sentences", 4 * config.cell_dim]),
            value("keep", FLOAT, ["sentences", 1]),
        ],
        [
            value(hidden, FLOAT, ["sentences", config.projection_dim]),
            value(cell, FLOAT, ["sentences", config.cell_dim]),
            value(out, FLOAT, ["sentences", config.projection_dim]),
        ],
        body.initializers,
    )
    num_sentences = graph.add("Shape", x, end=1)
    states = [
        graph.add(
            "ConstantOfShape", graph.add("Concat", num_sentences, graph.constant([dim]), axis=0)
        )
        for dim in dims.values()
    ]
    _, _, outputs = graph.add(
        "Scan", *states, products, keep, outputs=3, body=scan, num_scan_inputs=2,
        scan_input_axes=[1, 1], scan_output_axes=[1],
    )  # fmt: skip
    return outputs
