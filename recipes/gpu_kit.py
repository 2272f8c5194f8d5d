"""Pre-train on a GPU that is there for minutes: pack here, measure three ways there, take the best.

    python recipes/gpu_kit.py pack RUN/shards -o kit.tar --max-bytes 56000000
    python recipes/gpu_kit.py run kit.tar --valid held.txt --vocab vocab.txt -o OUT --minutes 12

``pack`` writes as many shards (`pretrain` leaves them in its directory) as fit. ``run`` trains for
20 seconds with each way to compute the recurrence, and for what is left with the best, on a
schedule by the clock. OUT then has ``rates.json``, ``metrics.jsonl`` and ``model.tar``, the model
in int8. If the best way is below 150,000 words/s it stops there: so slow a GPU is better used for
the runs of `elmokit experiment`. Run `pytest -m gpu` first.

The ways: ``loop``, the package's own, a step at a time; ``graph``, each layer's window recorded as
a CUDA graph; ``cudnn``, cuDNN's LSTM with projection, for models without clips.
"""

import argparse
import io
import json
import lzma
import shutil
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.bilm.bilm import DirectionState
from elmokit.bilm.lstmp import LSTMP
from elmokit.corpus.shards import MANIFEST_NAME, ShardBuilder, ShardSet
from elmokit.files.json_files import json_bytes, write_json
from elmokit.text.word_vocab import WordVocab
from elmokit.training.fused import lstm
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.pretraining.run import pretrain
from elmokit.training.pretraining.start import RunOptions, TrainingEvent
from elmokit.training.schedules import Limits
from elmokit.weights.model_dir import load_model

Run = Callable[[LSTMP, Tensor, DirectionState], tuple[Tensor, DirectionState]]
LEAST_WORDS_PER_SECOND = 150_000
SETTINGS = {
    "model.lstm.cell_dim": 1024,
    "model.lstm.projection_dim": 256,
    "softmax.num_samples": 8192,
    "optimizer.name": "muon",
    "optimizer.learning_rate": 4e-3,
    "optimizer.weight_decay": 0.1,
    "schedule.kind": "wsd",
    "schedule.final_factor": 0,
    "train.batch_size": 1024,
    "train.precision": "bf16",
    "train.zero_state_share": 0.1,
}
NO_CLIPS = {"model.lstm.cell_clip": "none", "model.lstm.projection_clip": "none"}
WORDS_NAME = "words.json.xz"
SURROGATES = "surrogatepass"  # ranks from 55,296 to 57,343 are no characters


def pack(shard_dir: Path, output: Path, max_bytes: int) -> int:
    """Write the words, the first shards that fit, and their manifest; return how many words.

    A shard is text whose characters are the ranks of its words by frequency, with 0 after each
    sentence: UTF-8 gives frequent words one byte, and LZMA finds repeated phrases.
    """
    shards = ShardSet.open(shard_dir)
    counts = Counter[str]()
    for index in range(len(shards)):
        shard = shards.load(index)
        counts.update(dict(zip(shard.words, np.bincount(shard.tokens).tolist(), strict=True)))
    ranks = {word: rank for rank, (word, _) in enumerate(counts.most_common(), 1)}
    words = lzma.compress(json.dumps(list(ranks)).encode(), preset=9)
    size, packed = len(words), dict[str, bytes]()
    for index, entry in enumerate(shards.entries):
        shard = shards.load(index)
        numbers = np.array([ranks[word] for word in shard.words], dtype="<u4")[shard.tokens]
        text = np.insert(numbers, shard.offsets[1:], 0).tobytes().decode("utf-32-le", SURROGATES)
        content = lzma.compress(text.encode("utf-8", SURROGATES), preset=9)
        size += len(content)
        if packed and size > max_bytes:
            break
        packed[entry.file] = content
    manifest = json.loads((shard_dir / MANIFEST_NAME).read_text("utf-8"))
    kept = shards.entries[: len(packed)]
    manifest["shards"] = manifest["shards"][: len(packed)]
    manifest["num_sentences"] = sum(entry.num_sentences for entry in kept)
    manifest["num_words"] = sum(entry.num_words for entry in kept)
    packed = {WORDS_NAME: words, **packed, MANIFEST_NAME: json_bytes(manifest)}
    with tarfile.open(output, "w") as archive:
        for name, content in packed.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return manifest["num_words"]


def unpack(kit: Path, shard_dir: Path) -> None:
    """Undo `pack`; whoever opens the shards compares them with the manifest."""
    with tarfile.open(kit) as archive:
        archive.extractall(shard_dir, filter="data")
    packed_words = shard_dir / WORDS_NAME
    words = ["", *json.loads(lzma.decompress(packed_words.read_bytes()))]
    packed_words.unlink()
    for index, path in enumerate(sorted(shard_dir.glob("shard-*"))):
        text = lzma.decompress(path.read_bytes()).decode("utf-8", SURROGATES)
        numbers = np.frombuffer(text.encode("utf-32-le", SURROGATES), dtype="<u4")
        builder, first = ShardBuilder(), 0
        for end in np.flatnonzero(numbers == 0).tolist():
            builder.add([words[rank] for rank in numbers[first:end].tolist()])
            first = end + 1
        builder.write(shard_dir, index=index)


def run_cudnn(layer: LSTMP, x: Tensor, state: DirectionState) -> tuple[Tensor, DirectionState]:
    """Return ``layer(x, state)`` by PyTorch's own LSTM: cuDNN's on a GPU. Without clips."""
    weights = layer.weights()
    assert weights.projection is not None
    parameters = [weights.input, weights.recurrent, weights.bias, torch.zeros_like(weights.bias)]
    hidden, cell = (part.to(x.dtype).unsqueeze(0).contiguous() for part in state)
    outputs, hidden, cell = torch.lstm(
        x, (hidden, cell), [*parameters, weights.projection],
        True, 1, 0.0, True, False, True,  # biases, layers, dropout, training, one way, batch first
    )  # fmt: skip
    return outputs, (hidden.squeeze(0), cell.squeeze(0))


class Flat(nn.Module):
    """A layer whose arguments and results are tensors, not pairs of them."""

    def __init__(self, layer: LSTMP) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        outputs, (hidden, cell) = self.layer(x, (hidden, cell))
        return outputs, hidden, cell


def new_graphs() -> Run:
    """Return what runs layers as CUDA graphs, each recorded at its first call with its shape."""
    recorded: dict[LSTMP, Callable[..., Any]] = {}

    def run_graph(layer: LSTMP, x: Tensor, state: DirectionState) -> tuple[Tensor, DirectionState]:
        if layer not in recorded:
            sample = (torch.zeros_like(x).requires_grad_(), *map(torch.zeros_like, state))
            # weights that autocast has cached must not be part of a graph
            with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
                recorded[layer] = torch.cuda.make_graphed_callables(Flat(layer), sample)  # pyright: ignore[reportArgumentType]
        outputs, hidden, cell = recorded[layer](x, *state)
        return outputs, (hidden, cell)

    return run_graph


WAYS: dict[str, Callable[[], Run]] = {
    "loop": lambda: lstm.run_fused, "graph": new_graphs, "cudnn": lambda: run_cudnn,
}  # fmt: skip


def train(
    way: str, shard_dir: Path, run_dir: Path, options: argparse.Namespace, *, minutes: float
) -> float:
    """Train one way; return the words per second of the second half of the updates' time."""
    speeds: list[tuple[float, int]] = []

    def listen(event: TrainingEvent) -> None:
        speeds.append((event.report.progress.seconds, event.report.progress.tokens))

    settings = SETTINGS | (NO_CLIPS if way == "cudnn" else {})
    overrides = [f"{key}={value}" for key, value in settings.items()]
    config = pretrain_config("tiny", overrides=[*overrides, *options.set])
    run_options = RunOptions(
        limits=Limits(minutes=minutes), valid=[options.valid], device=options.device,
        vocab=WordVocab.read(options.vocab), on_event=listen,
    )  # fmt: skip
    before, lstm.run_fused = lstm.run_fused, WAYS[way]()
    try:
        pretrain(config, [shard_dir], run_dir, run_options)
    finally:
        lstm.run_fused = before
    seconds, words = speeds[len(speeds) // 2]
    return (speeds[-1][1] - words) / max(speeds[-1][0] - seconds, 1e-9)


def run(options: argparse.Namespace) -> int:
    """Measure, train and pack what came out; return the exit status."""
    begun, out = time.monotonic(), options.output
    out.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    rates: dict[str, float | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        unpack(options.kit, work / "shards")
        for way in options.ways:
            try:
                minutes = options.trial_seconds / 60
                rates[way] = train(way, work / "shards", work / way, options, minutes=minutes)
            except RuntimeError as error:  # a way that this GPU refuses
                rates[way] = str(error)
            write_json(out / "rates.json", rates)
            print(way, rates[way], flush=True)
        words = {way: rate for way in options.ways if isinstance(rate := rates[way], float)}
        best = max(words, key=words.__getitem__, default=None)
        if best is None or words[best] < options.least:
            print(f"{words or rates} is too slow: use the GPU for task runs instead")
            return 3
        minutes = options.minutes - (time.monotonic() - begun) / 60 - options.reserve_minutes
        run_dir = work / "run"
        train(best, work / "shards", run_dir, options, minutes=minutes)
        shutil.copy(run_dir / "metrics.jsonl", out)
        model = load_model(run_dir)
        model.round_to("int8")
        model.save(work / "model", dtype="int8")
        shutil.make_archive(str(out / "model"), "tar", work, "model")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("shards", type=Path)
    packing.add_argument("-o", "--output", type=Path, required=True)
    packing.add_argument("--max-bytes", type=int, default=56_000_000)
    running = commands.add_parser("run")
    running.add_argument("kit", type=Path)
    running.add_argument("--valid", type=Path, required=True)
    running.add_argument("--vocab", type=Path, required=True)
    running.add_argument("-o", "--output", type=Path, required=True)
    running.add_argument("--minutes", type=float, default=9.0)
    running.add_argument("--reserve-minutes", type=float, default=0.7, help="after training")
    running.add_argument("--trial-seconds", type=float, default=20.0)
    running.add_argument("--least", type=float, default=LEAST_WORDS_PER_SECOND)
    running.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    running.add_argument("--device", default="cuda")
    running.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if options.command == "run":
        return run(options)
    words = pack(options.shards, options.output, options.max_bytes)
    print(f"{words:,} words in {options.output.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
