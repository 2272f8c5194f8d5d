"""Models in the layouts of other software, written byte by byte from descriptions of the formats.

Nothing here uses elmokit's readers: what they make of these files is compared with activations of
the original implementation, whose HDF5 arrays are written in another form.
"""

import io
import json
import re
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

Arrays = Mapping[str, np.ndarray]

# --- TensorFlow checkpoints


def varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def block(entries: list[tuple[bytes, bytes]], *, restart_every: int = 16) -> bytes:
    out, restarts, last = bytearray(), [], b""
    for number, (key, value) in enumerate(entries):
        shared = 0
        if number % restart_every == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:]
        out += value
        last = key
    restarts = restarts or [0]
    return bytes(out) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def table(entries: list[tuple[bytes, bytes]], *, per_block: int = 7) -> bytes:
    """Return an SSTable of sorted entries."""
    parts = [entries[start : start + per_block] for start in range(0, len(entries), per_block)]
    index = [(part[-1][0], number) for number, part in enumerate(parts)]
    return table_of([block(part) for part in parts], index)


def table_of(blocks: list[bytes], index: list[tuple[bytes, int]]) -> bytes:
    """Return an SSTable of blocks; its index has their last keys and numbers."""
    out = bytearray()

    def add(content: bytes) -> bytes:
        start = len(out)
        out.extend(content + bytes(5))  # its type and a checksum
        return varint(start) + varint(len(content))

    handles = [add(one) for one in blocks]
    footer = add(block([]))
    footer += add(block([(key, handles[number]) for key, number in index], restart_every=1))
    return bytes(out) + footer.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db")


def tensor_entry(code: int, shape: tuple[int, ...], data: bytes, *, shard=0, start=0) -> bytes:
    """Return what an index has of a tensor: type, shape and place."""
    dims = b"".join(field(2, field(1, size)) for size in shape)
    entry = field(1, code) + field(2, dims) + (field(3, shard) if shard else b"")
    entry += (field(4, start) if start else b"") + field(5, len(data))
    return entry + field(6, 0, fixed32=True)  # a checksum


def field(number: int, value: int | bytes, *, fixed32: bool = False) -> bytes:
    if fixed32:
        return varint(number << 3 | 5) + struct.pack("<I", value)
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


_TYPES = {"f4": 1, "f8": 2, "i4": 3, "i8": 9, "f2": 19}


def write_bundle(prefix: Path, variables: Arrays, *, num_shards=1, big_endian=False) -> None:
    """Write a checkpoint of version 2, its tensors dealt out over the data files."""
    shards = [bytearray() for _ in range(num_shards)]
    header = field(1, num_shards) + (field(2, 1) if big_endian else b"") + field(3, field(1, 1))
    entries = [(b"", header)]
    for number, (name, array) in enumerate(sorted(variables.items())):
        data, shard = np.ascontiguousarray(array).tobytes(), number % num_shards
        code, start = _TYPES[array.dtype.str[1:]], len(shards[shard])
        entry = tensor_entry(code, array.shape, data, shard=shard, start=start)
        entries.append((name.encode(), entry))
        shards[shard] += data
    prefix.parent.mkdir(parents=True, exist_ok=True)
    prefix.with_name(prefix.name + ".index").write_bytes(table(entries))
    for number, shard in enumerate(shards):
        name = f"{prefix.name}.data-{number:05d}-of-{num_shards:05d}"
        prefix.with_name(name).write_bytes(shard)


def variable_name(name: str) -> str:
    """Return TensorFlow's name of an array of the original's HDF5 file."""
    name = re.sub(
        r"/RNN/MultiRNNCell/Cell(\d+)/LSTMCell/", r"/rnn/multi_rnn_cell/cell_\1/lstm_cell/", name
    )
    name = name.replace("/RNN/LSTMCell/", "/rnn/lstm_cell/")
    for short, long in (("W_P_0", "projection/kernel"), ("W_0", "kernel"), ("B", "bias")):
        name = re.sub(rf"lstm_cell/{short}$", f"lstm_cell/{long}", name)
    return f"lm/{name}"


def write_checkpoint(folder: Path, arrays: Arrays, options, *, words=0, **settings) -> Path:
    """Write a run of the original's trainer: variables, slots, the step, options, vocabulary."""
    arrays = dict(arrays)
    folder.mkdir(parents=True, exist_ok=True)
    if words:
        rng = np.random.default_rng(3)
        dim = options["lstm"]["projection_dim"]
        arrays["softmax/W"] = rng.normal(0, 0.3, (words, dim)).astype("f4")
        arrays["softmax/b"] = rng.normal(0, 0.1, words).astype("f4")
        lines = ["</S>", "<S>", "<UNK>", *(f"w{number}" for number in range(words - 3))]
        (folder / "elmo-vocab.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    variables = {variable_name(name): array for name, array in arrays.items()}
    variables |= {f"{name}/Adagrad": np.ones_like(array) for name, array in variables.items()}
    variables["global_step"] = np.array(1250, dtype="i8")
    write_bundle(folder / "model.ckpt-1250", variables, **settings)
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "/runs/elmo/model.ckpt-1250"\n'
        'all_model_checkpoint_paths: "/runs/elmo/model.ckpt-1250"\n'
    )
    training = {**options, "n_tokens_vocab": words} if words else dict(options)
    (folder / "options.json").write_text(json.dumps(training))
    return folder


def write_hub_module(folder: Path, arrays: Arrays) -> Path:
    """Write the variables of a TF-Hub module."""
    variables = {}
    for name, array in arrays.items():
        name = re.sub(r"LSTMCell/W_P_0$", "rnn/lstm_cell/projection/kernel", name)
        name = re.sub(r"LSTMCell/W_0$", "rnn/lstm_cell/kernel", name)
        variables["bilm/" + re.sub(r"LSTMCell/B$", "rnn/lstm_cell/bias", name)] = array
    variables["aggregation/weights"] = np.zeros(3, dtype="f4")
    variables["aggregation/scaling"] = np.ones((), dtype="f4")
    write_bundle(folder / "variables" / "variables", variables)
    (folder / "saved_model.pb").write_bytes(b"\x08\x01\x12\x00")
    return folder


# --- AllenNLP


def elmo_state(arrays: Arrays) -> dict[str, torch.Tensor]:
    """Return the state of AllenNLP's ``_ElmoBiLm`` for the original's arrays."""
    state = {}
    token = "_token_embedder."
    embedding = arrays["char_embed"]
    state[f"{token}_char_embedding_weights"] = np.vstack((np.zeros_like(embedding[:1]), embedding))
    for name, array in arrays.items():
        parts = re.split(r"[/_]", name)
        if name.startswith("CNN/W_cnn"):
            state[f"{token}char_conv_{parts[-1]}.weight"] = array[0].transpose(2, 1, 0)
        elif name.startswith("CNN/b_cnn"):
            state[f"{token}char_conv_{parts[-1]}.bias"] = array
        elif name.endswith("W_transform"):
            keep = -arrays[name.replace("transform", "carry")].T
            state[f"{token}_highways._layers.{parts[2]}.weight"] = np.vstack((array.T, keep))
        elif name.endswith("b_transform"):
            keep = -arrays[name.replace("transform", "carry")]
            state[f"{token}_highways._layers.{parts[2]}.bias"] = np.concatenate((array, keep))
        elif name == "CNN_proj/W_proj":
            state[f"{token}_projection.weight"] = array.T
        elif name == "CNN_proj/b_proj":
            state[f"{token}_projection.bias"] = array
        elif found := re.fullmatch(r"RNN_(\d)/RNN/MultiRNNCell/Cell(\d)/LSTMCell/(\w+)", name):
            direction = ("forward", "backward")[int(found[1])]
            layer = f"_elmo_lstm.{direction}_layer_{found[2]}."
            if found[3] == "W_P_0":
                state[f"{layer}state_projection.weight"] = array.T
                continue
            i, g, f, o = np.split(array, 4, axis=-1)
            if found[3] == "B":
                state[f"{layer}state_linearity.bias"] = np.concatenate((i, f + 1, g, o))
                continue
            ordered = np.concatenate((i, f, g, o), axis=-1).T
            dim = ordered.shape[1] // 2
            state[f"{layer}input_linearity.weight"] = ordered[:, :dim]
            state[f"{layer}state_linearity.weight"] = ordered[:, dim:]
    return {
        name: torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
        for name, array in state.items()
    }


def mix_state(weights: list[float], gamma: float) -> dict[str, torch.Tensor]:
    """Return the state of AllenNLP's ``ScalarMix``."""
    state = {f"scalar_parameters.{k}": torch.tensor([value]) for k, value in enumerate(weights)}
    return {**state, "gamma": torch.tensor([gamma])}


def task_state(elmos: Mapping[str, Arrays], mixes: list[tuple[list[float], float]]):
    """Return the state of a task model with ELMos below names, each with mixtures."""
    state = {"encoder._module.weight_ih_l0": torch.ones(4, 4)}
    for name, arrays in elmos.items():
        for key, tensor in elmo_state(arrays).items():
            state[f"{name}._elmo_lstm.{key}"] = tensor
        for number, (weights, gamma) in enumerate(mixes):
            for key, tensor in mix_state(weights, gamma).items():
                state[f"{name}.scalar_mix_{number}.{key}"] = tensor
    return state


def write_archive(path: Path, state, *, embedder=None, files=None, legacy=True) -> Path:
    """Write a ``model.tar.gz`` of AllenNLP."""
    tables = {"type": "elmo_token_embedder", "options_file": "/x/options.json", **(embedder or {})}
    config = {
        "dataset_reader": {"type": "conll2003"},
        "model": {"type": "simple_tagger", "text_field_embedder": {"elmo": tables}},
    }
    stream = io.BytesIO()
    torch.save(dict(state), stream, _use_new_zipfile_serialization=not legacy)
    members = {
        "config.json": json.dumps(config).encode(),
        "weights.th": stream.getvalue(),
        "vocabulary/labels.txt": b"O\nB-PER\n",
        **(files or {}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


# --- ELMoForManyLangs


def write_many_langs(folder: Path, arrays: Arrays, options, *, legacy=False) -> dict[str, Any]:
    """Write a model: LSTMs of the original's arrays, and a token embedder drawn at random.

    Returns the lists and arrays of the token embedder, for an independent computation.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(11)
    characters = [*"abcdehilnorstw강은는이", "<pad>", "<oov>", "\u3000", *"<>", "<eow>", "<bow>"]
    characters += ["<eos>", "<bos>", "é"]
    words = ["<oov>", "<bos>", "<eos>", "<pad>", "the", "bank", "강", "은행", "x" * 28]
    ids = {one: i for i, one in enumerate(characters)}
    word_ids = {one: i for i, one in enumerate(words)}
    filters, dim, word_dim = [(1, 4), (3, 6)], options["lstm"]["projection_dim"], 7
    size = sum(count for _, count in filters)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.5, shape).astype("f4")

    token = {
        "word_emb_layer.embedding.weight": draw(len(words), word_dim),
        "char_emb_layer.embedding.weight": draw(len(characters), 5),
        "projection.weight": draw(dim, word_dim + size),
        "projection.bias": draw(dim),
    }
    for i, (width, count) in enumerate(filters):
        token[f"convolutions.{i}.weight"] = draw(count, 5, width)
        token[f"convolutions.{i}.bias"] = draw(count)
    for k in range(2):
        token[f"highways._layers.{k}.weight"] = draw(2 * size, size)
        token[f"highways._layers.{k}.bias"] = draw(2 * size)
    prefix = "_elmo_lstm."
    encoder = {
        name.removeprefix(prefix): one
        for name, one in elmo_state(arrays).items()
        if name.startswith(prefix)
    }
    for name, state in (("encoder.pkl", encoder), ("token_embedder.pkl", token)):
        tensors = {key: torch.as_tensor(value) for key, value in state.items()}
        torch.save(tensors, folder / name, _use_new_zipfile_serialization=not legacy)
    for name, listed in (("char.dic", characters), ("word.dic", words)):
        lines = "".join(f"{one}\t{i}\n" for i, one in enumerate(listed))
        (folder / name).write_text(lines, encoding="utf-8")
    network = {
        "encoder": {"name": "elmo", **options["lstm"]},
        "token_embedder": {
            "name": "cnn", "activation": "relu", "filters": filters, "n_highway": 2,
            "word_dim": word_dim, "char_dim": 5, "max_characters_per_token": 30,
        },
    }  # fmt: skip
    (folder / "configs").mkdir(exist_ok=True)
    (folder / "configs" / "cnn_50.json").write_text(json.dumps(network))
    run = {"seed": 1, "gpu": -1, "config_path": "/far/configs/cnn_50.json"}
    (folder / "config.json").write_text(json.dumps(run))
    return {"characters": ids, "words": word_ids, "token": token, "filters": filters}
