"""Writing a model as ONNX, for other languages and runtimes: character ids in, layers out.

The graph has one input and two outputs, all with dynamic numbers of sentences and positions:

- ``ids``, int64 (B, T, C), or (B, T) for word-input models: sentences with their boundary tokens,
  0 where padded, as `elmokit.text.char_vocab.CharVocab.encode` returns them;
- ``layers``, float32 (L, B, T, 2D), and ``mask``, bool (B, T), as in `BiLMOutput`.

Every sentence starts from the zero state. The recurrence is ONNX's ``Scan``: its ``LSTM`` has
neither projection nor clipping. The cell is that of `elmokit.bilm.lstmp`, which names its other
spellings.
"""

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.lstm_config import FORGET_OFFSET, LSTMConfig
from elmokit.errors import FormatError, InputError, needs_extra
from elmokit.files.atomic import atomic_file
from elmokit.files.sources import damage
from elmokit.shapes import Float, Integer
from elmokit.version import __version__
from elmokit.weights.stored_bilm import Arrays, LoadedBiLM

OPSET = 18
FLOAT, INT64, BOOL = 1, 7, 9
"""Of `onnx.TensorProto`."""
INPUT, LAYERS, MASK = "ids", "layers", "mask"
PRODUCER = "elmokit"
ADVICE = "Export the model again: `elmokit convert MODEL FILE.onnx`."


def write_onnx(model: LoadedBiLM, path: str | PathLike[str]) -> None:
    """Write the biLM, without its softmax, as one ONNX file.

    Metadata of the file name the model's hash and tokenizer, how it normalizes words and cuts long
    ones, and the version of elmokit.
    """
    if model.config.lexicon is not None:
        raise InputError(
            "ONNX is written for models of bytes; this one reads characters and words by lists "
            "(config.json, `lexicon`)."
        )
    onnx = _imported("onnx")
    reading = model.config.char_vocab
    graph = _Graph()
    outputs = _network(graph, model, model.stored().encoder().arrays())
    shape: list[str | int] = ["sentences", "positions"]
    if model.config.char_cnn is not None:
        shape.append(model.config.char_vocab.max_characters)
    make = onnx.helper.make_tensor_value_info
    results = [
        make(LAYERS, FLOAT, [model.num_layers, *shape[:2], model.output_dim]),
        make(MASK, BOOL, shape[:2]),
    ]
    proto = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes, "elmo", [make(INPUT, INT64, shape)], results, graph.initializers
        ),
        producer_name=PRODUCER,
        producer_version=__version__,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=10,  # of opset 18's time: newer ones are refused by older runtimes
    )
    for name, output in zip((LAYERS, MASK), outputs, strict=True):
        proto.graph.node.append(onnx.helper.make_node("Identity", [output], [name]))
    onnx.helper.set_model_props(proto, {
        "normalization": reading.normalization, "truncation": reading.truncation,
        "model_hash": model.model_hash(), "tokenizer": str(model.tokenizer),
    })  # fmt: skip
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


def run_onnx(
    path: str | PathLike[str], ids: Integer[np.ndarray, "B T ..."]
) -> Float[np.ndarray, "L N E2"]:
    """Return what ONNX Runtime computes on the CPU for ids: the layers at the N real tokens."""
    runtime = _imported("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    layers, mask = session.run([LAYERS, MASK], {INPUT: ids.astype(np.int64)})
    return layers[:, mask]


def _imported(library: str) -> Any:
    with needs_extra("onnx", module=library):
        return import_module(library)


class _Graph:
    """Nodes and constants of a graph, or of the body of a `Scan`, which may use outer names."""

    def __init__(self, *, prefix: str = "") -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._prefix = prefix

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add an operator; return the name of its output, or a list of names."""
        from onnx import helper

        names = [f"{self._prefix}{kind}_{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values: np.ndarray | list[int]) -> str:
        """Add a constant as it is; lists are int64."""
        from onnx import numpy_helper

        array = np.asarray(values)
        name = f"{self._prefix}constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def linear(self, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """Return x W^T + b: (…, X) -> (…, Y)."""
        product = self.add("MatMul", x, self.add("Transpose", self.constant(weight), perm=[1, 0]))
        return self.add("Add", product, self.constant(bias))

    def clip(self, x: str, bound: float | None) -> str:
        if bound is None:
            return x
        limits = (self.constant(np.array(limit, dtype=np.float32)) for limit in (-bound, bound))
        return self.add("Clip", x, *limits)


def _network(graph: _Graph, model: LoadedBiLM, arrays: Arrays) -> tuple[str, str]:
    zero, last = graph.constant(np.array(0)), graph.constant([2])
    mask = graph.add("Greater", INPUT, zero)
    if model.config.char_cnn is not None:
        mask = graph.add("Greater", graph.add("ReduceMax", INPUT, last, keepdims=0), zero)
    counted = graph.add("Cast", mask, to=INT64)  # (B, T)
    lengths = graph.add("ReduceSum", counted, graph.constant([1]), keepdims=0)
    keep = graph.add("Unsqueeze", graph.add("Cast", mask, to=FLOAT), last)  # (B, T, 1)
    tokens = graph.add("Mul", _tokens(graph, model.config, arrays), keep)  # (B, T, D)

    def reversed_(x: str) -> str:
        return graph.add("ReverseSequence", x, lengths, batch_axis=0, time_axis=1)

    stacks = []
    for stack, turned in (("forward_layers", lambda x: x), ("backward_layers", reversed_)):
        x, outputs = turned(tokens), []
        for index in range(model.config.lstm.num_layers):
            out = _lstm(graph, model.config.lstm, arrays, f"{stack}.{index}.", x, keep)
            if index > 0 and model.config.lstm.skip_connections:
                out = graph.add("Add", out, x)
            outputs.append(turned(out))
            x = out
        stacks.append(outputs)
    pairs = [(tokens, tokens), *zip(*stacks, strict=True)]
    joined = [graph.add("Concat", *pair, axis=2) for pair in pairs]
    axis = graph.constant([0])
    layers = graph.add("Concat", *(graph.add("Unsqueeze", layer, axis) for layer in joined), axis=0)
    return layers, mask


def _tokens(graph: _Graph, config: BiLMConfig, arrays: Arrays) -> str:
    """Return the token layer's vectors (B, T, D)."""
    own = {name.removeprefix("token_encoder."): array for name, array in arrays.items()}
    if config.char_cnn is None:
        return graph.add("Gather", graph.constant(own["embedding.weight"]), INPUT)
    length = config.char_vocab.max_characters
    flat = graph.add("Reshape", INPUT, graph.constant([-1, length]))  # (U, C)
    characters = graph.add("Gather", graph.constant(own["char_embedding.weight"]), flat)
    characters = graph.add("Transpose", characters, perm=[0, 2, 1])  # (U, E, C)
    maxima = []
    for number in range(len(config.char_cnn.filters)):
        weight, bias = (own[f"convolutions.{number}.{part}"] for part in ("weight", "bias"))
        kernel = graph.constant(weight), graph.constant(bias)
        answers = graph.add("Conv", characters, *kernel)  # (U, filters, windows)
        maxima.append(graph.add("ReduceMax", answers, graph.constant([2]), keepdims=0))
    x = graph.add("Concat", *maxima, axis=1)  # (U, F)
    x = graph.add("Relu" if config.char_cnn.activation == "relu" else "Tanh", x)
    unit = graph.constant(np.ones((), dtype=np.float32))
    for number in range(config.char_cnn.num_highway):
        carry, transform = (
            graph.linear(x, own[f"{name}.weight"], own[f"{name}.bias"])
            for name in (f"highways.{number}.carry", f"highways.{number}.transform")
        )
        gate, change = graph.add("Sigmoid", carry), graph.add("Relu", transform)
        carried = graph.add("Mul", graph.add("Sub", unit, gate), x)
        x = graph.add("Add", graph.add("Mul", gate, change), carried)
    if "projection.weight" in own:
        x = graph.linear(x, own["projection.weight"], own["projection.bias"])
    sizes = graph.add("Shape", INPUT, end=2)
    dim = graph.constant([config.lstm.projection_dim])
    return graph.add("Reshape", x, graph.add("Concat", sizes, dim, axis=0))


def _lstm(graph: _Graph, config: LSTMConfig, arrays: Arrays, prefix: str, x: str, keep: str) -> str:
    """Return the outputs of a layer: x (B, T, D), keep (B, T, 1) -> (B, T, D)."""
    from onnx import helper

    # the forget gate's 1, which is added at run time elsewhere, is in the exported bias
    bias = arrays[f"{prefix}bias"].copy()  # (4H,)
    bias[config.cell_dim : 2 * config.cell_dim] += np.float32(FORGET_OFFSET)
    products = graph.linear(x, arrays[f"{prefix}input_weight"], bias)  # (B, T, 4H)
    # the body of the scan may use names of the outer graph, such as these weights
    recurrent = graph.add(
        "Transpose", graph.constant(arrays[f"{prefix}recurrent_weight"]), perm=[1, 0]
    )
    projection = arrays.get(f"{prefix}projection_weight")
    if projection is not None:
        projection = graph.add("Transpose", graph.constant(projection), perm=[1, 0])
    body = _Graph(prefix=f"{recurrent}_")
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
    inputs = dims | {"gates_in": 4 * config.cell_dim, "keep": 1}
    results = {hidden: config.projection_dim, cell: config.cell_dim, out: config.projection_dim}
    named = [
        [value(name, FLOAT, ["sentences", dim]) for name, dim in values.items()]
        for values in (inputs, results)
    ]
    scan = helper.make_graph(body.nodes, "step", named[0], named[1], body.initializers)
    num_sentences = graph.add("Shape", x, end=1)
    sizes = [
        graph.add("Concat", num_sentences, graph.constant([dim]), axis=0) for dim in dims.values()
    ]
    states = [graph.add("ConstantOfShape", size) for size in sizes]
    _, _, outputs = graph.add(
        "Scan", *states, products, keep, outputs=3, body=scan, num_scan_inputs=2,
        scan_input_axes=[1, 1], scan_output_axes=[1],
    )  # fmt: skip
    return outputs
