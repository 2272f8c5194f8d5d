"""Writing a model as ONNX, for other languages and runtimes: character ids in, layers out.

The graph has one input and two outputs, all with dynamic numbers of sentences and positions:

- ``ids``, int64 (B, T, C), or (B, T) for word-input models: sentences with their boundary tokens,
  0 where padded, as `elmokit.text.char_vocab.CharVocab.encode` returns them;
- ``layers``, float32 (L, B, T, 2D), and ``mask``, bool (B, T), as in `BiLMOutput`.

Every sentence starts from the zero state. The recurrence is ONNX's ``Scan``: its ``LSTM`` has
neither projection nor clipping. The cell is that of `elmokit.bilm.lstmp`, which names its other
spellings. The graph is written in ONNX's own text form (docs/Syntax.md of its repository).
"""

from collections.abc import Iterator
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np

from elmokit.bilm.config import BiLMConfig, Direction
from elmokit.bilm.lstm_config import FORGET_OFFSET, LSTMConfig
from elmokit.errors import FormatError, InputError, needs_extra
from elmokit.files.atomic import atomic_file
from elmokit.files.sources import damage
from elmokit.shapes import Float, Integer
from elmokit.version import __version__
from elmokit.weights.stored_bilm import Arrays, LoadedBiLM

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
    onnx, lstm, reading = _imported("onnx"), model.config.lstm, model.config.char_vocab
    arrays = dict(model.stored().encoder().arrays())
    proto = _imported("onnx.parser").parse_model(_model_text(model.config, arrays))
    # the forget gate's 1, which stored biases exclude
    arrays["offset"] = np.repeat([0, FORGET_OFFSET, 0, 0], lstm.cell_dim).astype(np.float32)
    proto.graph.initializer.extend(map(onnx.numpy_helper.from_array, arrays.values(), arrays))
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
    layers, mask = session.run(["layers", "mask"], {"ids": ids.astype(np.int64)})
    return layers[:, mask]


def _imported(library: str) -> Any:
    with needs_extra("onnx", module=library):
        return import_module(library)


def _model_text(config: BiLMConfig, arrays: Arrays) -> str:
    """Return the model in ONNX's text form, with the names of its parameters in their place."""
    lstm, dim = config.lstm, config.lstm.projection_dim
    length = "" if config.char_cnn is None else f", {config.char_vocab.max_characters}"
    clip = lstm.cell_clip or np.inf
    return f"""
<
  ir_version: 10,  # of opset 18's time: newer ones are refused by older runtimes
  opset_import: ["": 18], producer_name: "{PRODUCER}", producer_version: "{__version__}"
>
elmo (int64[sentences, positions{length}] ids) => (
  float[{lstm.num_layers + 1}, sentences, positions, {2 * dim}] layers,
  bool[sentences, positions] mask
) <
  int64 zero = {{0}}, int64[1] first = {{0}}, int64[1] third = {{2}},
  int64[1] dim = {{{dim}}}, int64[1] cell_dim = {{{lstm.cell_dim}}},
  float cell_min = {{-{clip}}}, float cell_max = {{{clip}}}
> {{
  num_sentences = Shape <end = 1> (ids)
  hidden_shape = Concat <axis = 0> (num_sentences, dim)
  cell_shape = Concat <axis = 0> (num_sentences, cell_dim)
  first_hidden = ConstantOfShape (hidden_shape)
  first_cell = ConstantOfShape (cell_shape)
  {"".join(_token_layer(config, arrays))}
  mask = Greater (largest_ids, zero)
  real = Cast <to = 1> (mask)  # float
  keep = Unsqueeze (real, third)  # (B, T, 1)
  forward_0 = Mul (vectors, keep)  # (B, T, D)
  backward_0 = Identity (forward_0)
  {"".join(_lstm_layers(lstm, arrays))}
}}"""


def _token_layer(config: BiLMConfig, arrays: Arrays) -> Iterator[str]:
    """Yield the lines that compute each token's largest id (B, T) and its vector (B, T, D)."""
    if config.char_cnn is None:
        yield """
  largest_ids = Identity (ids)
  vectors = Gather ("token_encoder.embedding.weight", ids)"""
        return
    parameters = '"token_encoder.{0}.weight", "token_encoder.{0}.bias"'.format
    yield f"""
  largest_ids = ReduceMax <keepdims = 0> (ids, third)
  flat_shape = Constant <value_ints = [-1, {config.char_vocab.max_characters}]> ()
  one = Constant <value_float = 1.0> ()
  flat_ids = Reshape (ids, flat_shape)  # (U, C)
  rows = Gather ("token_encoder.char_embedding.weight", flat_ids)
  characters = Transpose <perm = [0, 2, 1]> (rows)  # (U, E, C)"""
    num_filters, num_highway = len(config.char_cnn.filters), config.char_cnn.num_highway
    for n in range(num_filters):
        yield f"""
  answers_{n} = Conv (characters, {parameters(f"convolutions.{n}")})  # (U, filters, windows)
  maxima_{n} = ReduceMax <keepdims = 0> (answers_{n}, third)"""
    yield f"""
  filters = Concat <axis = 1> ({", ".join(f"maxima_{n}" for n in range(num_filters))})  # (U, F)
  x_0 = {"Relu" if config.char_cnn.activation == "relu" else "Tanh"} (filters)"""
    for n in range(num_highway):
        yield f"""
  carry_{n} = Gemm <transB = 1> (x_{n}, {parameters(f"highways.{n}.carry")})
  transform_{n} = Gemm <transB = 1> (x_{n}, {parameters(f"highways.{n}.transform")})
  gate_{n} = Sigmoid (carry_{n})
  change_{n} = Relu (transform_{n})
  changed_{n} = Mul (gate_{n}, change_{n})
  rest_{n} = Sub (one, gate_{n})
  carried_{n} = Mul (rest_{n}, x_{n})
  x_{n + 1} = Add (changed_{n}, carried_{n})"""
    words = f"x_{num_highway}"
    if "token_encoder.projection.weight" in arrays:
        words = "words"
        yield f"""
  words = Gemm <transB = 1> (x_{num_highway}, {parameters("projection")})"""
    yield f"""
  sizes = Shape <end = 2> (ids)
  shape = Concat <axis = 0> (sizes, dim)
  vectors = Reshape ({words}, shape)"""


def _lstm_layers(config: LSTMConfig, arrays: Arrays) -> Iterator[str]:
    """Yield the lines that compute ``layers`` from the inputs of both directions."""
    clip = config.projection_clip or np.inf
    for reverse, direction in enumerate(get_args(Direction)):
        for n in range(config.num_layers):
            name, x, y = f"{direction}_layers.{n}", f"{direction}_{n}", f"{direction}_{n + 1}"
            project = "new_hidden = Mul (gated, is_real)"
            if f"{name}.projection_weight" in arrays:
                project = f"""
      projected = Gemm <transB = 1> (gated, "{name}.projection_weight")
      min = Constant <value_float = -{clip}> ()
      max = Constant <value_float = {clip}> ()
      clipped = Clip (projected, min, max)
      new_hidden = Mul (clipped, is_real)"""
            has_skip = config.skip_connections and n > 0
            yield f"""
  {y}_weight = Transpose ("{name}.input_weight")
  {y}_products = MatMul ({x}, {y}_weight)
  {y}_bias = Add ("{name}.bias", offset)
  {y}_gates = Add ({y}_products, {y}_bias)  # (B, T, 4H)
  {y}_hidden, {y}_cell, {y}_own = Scan <
    num_scan_inputs = 2, scan_input_axes = [1, 1], scan_output_axes = [1],
    scan_input_directions = [{reverse}, {reverse}], scan_output_directions = [{reverse}],
    body = step (float[B, D] hidden, float[B, H] cell, float[B, G] gates_in, float[B, 1] is_real)
      => (float[B, D] new_hidden, float[B, H] new_cell, float[B, D] output)
    {{
      gates = Gemm <transB = 1> (hidden, "{name}.recurrent_weight", gates_in)
      i, f, g, o = Split <axis = 1, num_outputs = 4> (gates)
      input_gate = Sigmoid (i)
      forget_gate = Sigmoid (f)
      output_gate = Sigmoid (o)
      candidate = Tanh (g)
      remembered = Mul (forget_gate, cell)
      added = Mul (input_gate, candidate)
      sum = Add (remembered, added)
      clipped_cell = Clip (sum, cell_min, cell_max)
      squashed = Tanh (clipped_cell)
      gated = Mul (output_gate, squashed)
      # zero at padding: so the backward direction begins at the last token from the zero state
      new_cell = Mul (clipped_cell, is_real)
      {project}
      output = Identity (new_hidden)
    }}
  > (first_hidden, first_cell, {y}_gates, keep)
  {y} = {f"Add ({y}_own, {x})" if has_skip else f"Identity ({y}_own)"}"""
    numbers = range(config.num_layers + 1)
    for n in numbers:
        yield f"""
  joined_{n} = Concat <axis = 2> (forward_{n}, backward_{n})
  layer_{n} = Unsqueeze (joined_{n}, first)  # (1, B, T, 2D)"""
    yield f"""
  layers = Concat <axis = 0> ({", ".join(f"layer_{n}" for n in numbers)})"""
