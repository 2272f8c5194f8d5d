"""Small files, well formed and with right checksums, that mean gigabytes or work without an end.

``python -m tests.builders.bombs FOLDER`` reads each in a process of its own, and prints what came
of it: a line of JSON with its size, the seconds of the processor, and the peak of memory.
"""

import io
import json
import math
import os
import resource
import signal
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet

from elmokit.corpus.readers import read_text_lines
from elmokit.embed.vector_sequence import open_vectors
from elmokit.errors import ElmokitError
from elmokit.files.text_reader import ReadReport
from elmokit.weights.model_dir import read_bilm_tf
from elmokit.weights.readers.contents import Choices
from elmokit.weights.readers.registry import read_foreign

from . import foreign_models as foreign

OPTIONS = {
    "lstm": {
        "use_skip_connections": True, "projection_dim": 128, "dim": 1024, "n_layers": 90,
        "cell_clip": 3, "proj_clip": 3,
    },
    "char_cnn": {
        "activation": "relu", "filters": [[1, 32]], "n_highway": 1, "embedding": {"dim": 16},
        "n_characters": 262, "max_characters_per_token": 50,
    },
}  # fmt: skip


SHAPES = {
    "char_embed": (261, 16), "CNN/W_cnn_0": (1, 1, 16, 32), "CNN/b_cnn_0": (32,),
    "CNN_high_0/W_carry": (32, 32), "CNN_high_0/b_carry": (32,),
    "CNN_high_0/W_transform": (32, 32), "CNN_high_0/b_transform": (32,),
    "CNN_proj/W_proj": (32, 128), "CNN_proj/b_proj": (128,),
}  # fmt: skip
CELL_SHAPES = {"W_0": (256, 4096), "B": (4096,), "W_P_0": (1024, 128)}
"""Of one of the 90 layers of either direction: 4.7 MB in all."""


def cells() -> list[str]:
    return [
        f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
        for direction in range(2)
        for layer in range(90)
    ]


# --- TensorFlow


def table_block(rows: list[tuple[int, bytes, bytes]]) -> bytes:
    """Return a block of rows: bytes shared with the key before, the rest of the key, value."""
    out = bytearray()
    for num_shared, rest, value in rows:
        for number in (num_shared, len(rest), len(value)):
            out += foreign.varint(number)
        out += rest + value
    return bytes(out) + struct.pack("<2I", 0, 1)


HEADER = (0, b"", foreign.field(1, 1))
EIGHT = foreign.tensor_entry(1, (8,), bytes(32))


def tensorflow(folder: Path, *, index: Callable[[], bytes]) -> None:
    (folder / "model.index").write_bytes(index())
    (folder / "model.data-00000-of-00001").write_bytes(bytes(1 << 22))
    (folder / "options.json").write_text(json.dumps(OPTIONS))


def shared_prefixes(length: int, num_keys: int) -> bytes:
    rows = [HEADER, (0, b"k" * length, EIGHT)]
    rows += [(length, b"%06d" % number, EIGHT) for number in range(num_keys)]
    return foreign.table_of([table_block(rows)], [(b"", 0)])


def listed_often(times: int) -> bytes:
    rows = [(0, b"%06d" % number, EIGHT) for number in range(20_000)]
    index = [(b"%08d" % number, min(number, 1)) for number in range(times + 1)]
    return foreign.table_of([table_block([HEADER]), table_block(rows)], index)


def one_region() -> bytes:
    """Variables of 90 layers, all of them the same bytes."""
    entries = {
        name: foreign.tensor_entry(1, shape, bytes(4 * math.prod(shape)))
        for name, shape in {**SHAPES, **CELL_SHAPES}.items()
    }
    for name in CELL_SHAPES:
        entries |= dict.fromkeys([cell + name for cell in cells()], entries.pop(name))
    rows = [(0, foreign.variable_name(name).encode(), entry) for name, entry in entries.items()]
    return foreign.table_of([table_block([HEADER, *sorted(rows)])], [(b"", 0)])


# --- PyTorch


def torch_pickle(folder: Path, *, program: bytes) -> None:
    """Put the values of a pickle into a file of tensors."""
    with zipfile.ZipFile(folder / "weights.th", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + program + b".")
        archive.writestr("archive/version", b"3\n")
        archive.writestr("archive/byteorder", b"little")


def doubled(depth: int) -> bytes:
    """A dictionary with a key of nested pairs, each of the same tuple twice."""
    pairs = b"".join(b"q%ch%c\x86" % (k, k) for k in range(depth))
    return b"})" + pairs + b"K\x01s"


def views(folder: Path) -> None:
    """Every tensor of 90 layers is the same memory."""
    values = torch.zeros(1 << 21)
    state = {name: values[:4].view(shape) for name, shape in {
        "e._elmo_lstm._token_embedder._char_embedding_weights": (2, 2),
        "e._elmo_lstm._token_embedder.char_conv_0.weight": (2, 2, 1),
        "e._elmo_lstm._token_embedder.char_conv_0.bias": (4,),
        "e._elmo_lstm._token_embedder._projection.weight": (2, 2),
        "e._elmo_lstm._token_embedder._projection.bias": (4,),
    }.items()}  # fmt: skip
    for layer in range(90):
        for direction in ("forward", "backward"):
            name = f"e._elmo_lstm._elmo_lstm.{direction}_layer_{layer}."
            matrix = values.view(1 << 12, -1)
            state |= {f"{name}{part}.weight": matrix for part in (
                "input_linearity", "state_linearity", "state_projection"
            )}  # fmt: skip
            state[f"{name}state_linearity.bias"] = values[: 1 << 12]
    torch.save(state, folder / "weights.th")


# --- archives


def chained_headers(folder: Path) -> None:
    """Attributes before attributes, each of which `tarfile` keeps until the last."""
    with tarfile.open(folder / "model.tar.gz", "w:gz", compresslevel=1) as archive:
        for _ in range(120):
            header = tarfile.TarInfo("x")
            record = b"4000000 comment=" + bytes(4_000_000 - 17) + b"\n"
            header.type, header.size = tarfile.XHDTYPE, len(record)
            archive.addfile(header, io.BytesIO(record))


# --- arrays


def zeros_of_hdf5(folder: Path, *, shape: tuple[int, ...], chunks: tuple[int, ...]) -> None:
    """A sentence of compressed zeros."""
    packed = zlib.compress(bytes(4 * math.prod(chunks)), 1)
    with h5py.File(folder / "out.h5", "w") as file:
        dataset = file.create_dataset(
            "0", shape, "f4", chunks=chunks, maxshape=(None, None, None), compression="gzip"
        )
        for row in range(0, shape[0], chunks[0]):
            for word in range(0, shape[1], chunks[1]):
                dataset.id.write_direct_chunk((row, word, 0), packed)


def linked_layers(folder: Path) -> None:
    """Weights of 90 layers under names of their own, but stored once."""
    (folder / "options.json").write_text(json.dumps(OPTIONS))
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, shape in {**SHAPES, **CELL_SHAPES}.items():
            file[name] = np.zeros(shape, np.float32)
        for cell in cells():
            for name in CELL_SHAPES:
                file[cell + name] = file[name]


def overlapping_members(folder: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.zeros((3, 400, 1024), np.float32))
    with zipfile.ZipFile(folder / "out.npz", "w") as archive:
        archive.writestr("0.npy", stream.getvalue())
        for number in range(1, 3000):
            member = zipfile.ZipInfo(f"{number}.npy")
            for field in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(member, field, getattr(archive.filelist[0], field))
            archive.filelist.append(member)


def compressed_member(folder: Path) -> None:
    with zipfile.ZipFile(folder / "out.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        stream = io.BytesIO()
        np.save(stream, np.zeros((3, 24_000, 1024), np.float32))
        archive.writestr("0.npy", stream.getvalue())


# --- Parquet


def parquet_table(
    folder: Path, *, columns: Callable[[], dict[str, Any]], name: str = "text.parquet", **options
) -> None:
    options.setdefault("compression", "none")
    parquet.write_table(pa.table(columns()), folder / name, write_statistics=False, **options)


def one_long_row() -> dict[str, Any]:
    """A sentence of zeros, which are one value of a dictionary, or compressed."""
    values = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(1 << 26, np.float32)), 1 << 10)
    return {"id": pa.array([0]), "top": pa.ListArray.from_arrays([0, 1 << 16], values)}


def repeated_text() -> dict[str, Any]:
    words = pa.DictionaryArray.from_arrays(np.zeros(1000, np.int32), ["x" * 10_000_000])
    return {"text": words}


def long_texts(count: int, length: int) -> dict[str, Any]:
    return {"text": pa.array(["x" * length] * count)}


BOMBS: dict[str, Callable[[Path], object]] = {
    "tf-one-long-prefix": partial(tensorflow, index=partial(shared_prefixes, 500_000, 9_000)),
    "tf-block-listed-100000-times": partial(tensorflow, index=partial(listed_often, 100_000)),
    "tf-one-region": partial(tensorflow, index=one_region),
    "torch-key-of-pairs": partial(torch_pickle, program=doubled(60)),
    "torch-bytes": partial(
        torch_pickle, program=b"}X\x01\0\0\0acbuiltins\nbytearray\nJ\0\0\0\x7f\x85Rs"
    ),
    "torch-opcodes": partial(
        torch_pickle, program=b"}X\x01\0\0\0a](" + b"N" * 6_000_000 + b"es"
    ),
    "torch-views": views,
    "tar-headers": chained_headers,
    "hdf5-linked-layers": linked_layers,
    "hdf5-zeros": partial(zeros_of_hdf5, shape=(3, 80_000, 1024), chunks=(1, 8000, 1024)),
    "hdf5-chunk": partial(zeros_of_hdf5, shape=(3, 4, 8), chunks=(64, 4096, 512)),
    "npz-overlap": overlapping_members,
    "npz-zeros": compressed_member,
    "parquet-zeros": partial(
        parquet_table, columns=one_long_row, name="out.parquet", use_dictionary=False,
        compression="zstd",
    ),
    "parquet-text": partial(parquet_table, columns=repeated_text, store_schema=False),
    "parquet-page": partial(
        parquet_table, columns=partial(long_texts, 600, 1_000_000), use_dictionary=False,
        compression="zstd", data_page_size=1 << 30,
    ),
    "parquet-prefixes": partial(
        parquet_table, columns=partial(long_texts, 100, 10_000_000), use_dictionary=False,
        column_encoding={"text": "DELTA_BYTE_ARRAY"},
    ),
}  # fmt: skip


def read(folder: Path) -> object:
    if (folder / "text.parquet").exists():
        return sum(1 for _ in read_text_lines([folder / "text.parquet"], ReadReport()))
    sentences = [*folder.glob("out.*")]
    if sentences:
        return [vectors.shape for _, vectors in open_vectors(sentences[0])]
    if (folder / "weights.hdf5").exists():
        return read_bilm_tf(folder / "options.json", folder / "weights.hdf5")
    archives = [*folder.glob("model.zip"), *folder.glob("model.tar.gz")]
    return read_foreign((archives or [folder])[0], Choices(), scratch=folder / "scratch")


def outcome_of(
    work: Callable[[Path], object], folder: Path, *, most_seconds: int = 20
) -> tuple[str, float, int]:
    """Run in a process of its own; return how it ended, its seconds, and its peak of bytes."""
    told = folder / "outcome"
    if (child := os.fork()) == 0:
        signal.alarm(most_seconds)
        try:
            work(folder)
            told.write_text("read")
        except ElmokitError as error:
            told.write_text(f"refused: {error}")
        except BaseException as error:
            told.write_text(f"{type(error).__name__}: {error}")
        os._exit(0)
    _, status, usage = os.wait4(child, 0)
    ended = told.read_text() if told.exists() else f"ended by signal {status}"
    told.unlink(missing_ok=True)
    return ended, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main(root: Path) -> None:
    for name, make in BOMBS.items():
        folder = root / name
        folder.mkdir()
        made, _, _ = outcome_of(make, folder, most_seconds=300)
        if made != "read":
            raise RuntimeError(f"{name}: {made}")
        size = sum(path.stat().st_size for path in folder.iterdir())
        ended, seconds, peak = outcome_of(read, folder)
        row = {"name": name, "bytes": size, "ended": ended, "seconds": seconds, "peak": peak}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    limit = 6 << 30  # where a bomb goes off, it ends before the machine does
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    main(Path(sys.argv[1]))
