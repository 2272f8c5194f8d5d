"""Ours: `Embedder` and `pretrain` whole, as users call them."""

import sys
import tempfile
import time
from pathlib import Path

import torch
from protocol import answer, read_request, time_embedding

from elmokit import Embedder, WordVocab
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.pretraining.run import RunOptions, TrainingEvent, pretrain
from elmokit.training.schedules import Limits

PACKAGES = ("elmokit", "torch", "numpy")
ENDLESS = 10**11


def embed() -> None:
    """Embed, with the word cache, empty at first, where that is asked for."""
    request = read_request()
    embedder = Embedder.load(
        Path(request["folder"], "model"), precision=request["precision"],
        num_threads=request["threads"], word_cache=request["keep_words"],
    )  # fmt: skip
    answer(PACKAGES, **time_embedding(request["calls"], embedder.embed))


def train() -> None:
    """Make one update, whose loss is told, and time the following ones."""
    request = read_request()
    torch.set_num_threads(request["threads"])
    folder = Path(request["folder"])
    first: list[float] = []

    def on_event(event: TrainingEvent) -> None:
        if event.report.progress.step == 1:
            first[:] = event.report.loss, time.perf_counter()
        if event.report.progress.step == 1 + request["steps"]:
            loss, started = first
            answer(PACKAGES, loss=loss, seconds=time.perf_counter() - started)
            sys.exit()  # nobody needs the model

    settings = {"precision": request["precision"], "checkpoint_steps": ENDLESS}
    overrides = [f"train.{name}={value}" for name, value in settings.items()]
    config = pretrain_config(request["preset"], overrides=[*request["overrides"], *overrides])
    options = RunOptions(
        limits=Limits(tokens=ENDLESS), vocab=WordVocab.read(folder / "vocab.txt"), device="cpu",
        on_event=on_event,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as run_dir:
        pretrain(config, [folder / "shards"], Path(run_dir, "run"), options)


if __name__ == "__main__":
    {"embed": embed, "train": train}[sys.argv[1]]()
