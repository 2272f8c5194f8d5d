"""Planned runs and results for the tests of experiments."""

from elmokit.experiments.runs import PlannedRun, RunResult


def planned(condition="static", *, task="nli", dataset="pairs", share=1.0, seed=0, **facts):
    decides = {"condition": condition, "task": task, "share": share, "seed": seed, **facts}
    return PlannedRun(
        task=task, dataset=dataset, condition=condition, share=share, seed=seed, metadata=decides
    )


def result(
    value=50.0, *, right=None, units=(), epochs=(), best_epoch=0, seconds=10.0, wall_seconds=12.0,
    weights=(),
):  # fmt: skip
    """A result; ``right`` says which dev examples were answered rightly, ``units`` whose they are.

    ``epochs`` are scores on the held-out part.
    """
    return RunResult(
        metric="accuracy", value=value, num_examples=100, seconds=seconds,
        wall_seconds=wall_seconds,
        epochs=[
            {"epoch": number, "loss": 1.0, "held_out": score}
            for number, score in enumerate(epochs, 1)
        ],
        best_epoch=best_epoch, layer_weights=tuple(weights),
        made={"date": "today", "hardware": "an abacus", "versions": "0"},
        counts=[[float(one), 1.0] for one in right or []], sampling_units=list(map(int, units)),
    )  # fmt: skip
