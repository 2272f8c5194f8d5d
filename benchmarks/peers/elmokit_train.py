"""Ours: `elmokit.training.pretraining.pretrain`, whole: data preparation, objective, update, log.

It waits for requests between two updates, in the callback that every caller of `pretrain` has.
"""

import tempfile
import time
from pathlib import Path

import torch
from protocol import open_channel, versions

from elmokit import WordVocab
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.pretraining.pretrain import RunOptions, pretrain
from elmokit.training.pretraining.run import TrainingEvent
from elmokit.training.schedules import Limits

ENDLESS = 10**11


def main() -> None:
    """Train until nobody asks any more."""
    requests, answer = open_channel()
    request = next(requests)
    torch.set_num_threads(request["threads"])
    folder = Path(request["folder"])
    remaining, started = 0, 0.0

    def on_event(event: TrainingEvent) -> None:
        nonlocal remaining, started
        if event.report.progress.step == 1:
            answer({"loss": event.report.loss, "versions": versions(["elmokit", "torch"])})
        else:
            remaining -= 1
            if remaining > 0:
                return
            answer({"seconds": time.perf_counter() - started})
        following = next(requests, None)
        if following is None:
            raise SystemExit
        remaining, started = following["steps"], time.perf_counter()

    config = pretrain_config(
        request["preset"],
        overrides=[
            *request["overrides"],
            f"train.precision={request['precision']}",
            f"train.checkpoint_steps={ENDLESS}",
        ],
    )
    options = RunOptions(
        limits=Limits(tokens=ENDLESS),
        vocab=WordVocab.read(folder / "vocab.txt"),
        device="cpu",
        on_event=on_event,
    )
    with tempfile.TemporaryDirectory() as run_dir:
        try:
            pretrain(config, [folder / "shards"], Path(run_dir, "run"), options)
        except Exception as error:
            answer({"error": f"{type(error).__name__}: {error}"})
            raise


if __name__ == "__main__":
    main()
