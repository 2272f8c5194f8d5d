"""`elmokit experiment`: a table or figure of the paper at laptop scale."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, progress_bar
from elmokit.cli.threads import choose_threads
from elmokit.errors import InputError
from elmokit.experiments.definitions import EXPERIMENTS


def experiment(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="; ".join(f"{name} ({table.title})" for name, table in EXPERIMENTS.items()) + ".",
        ),
    ],
    *,
    data: Annotated[Path, typer.Option(metavar="DIR")] = Path("data"),
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="MODEL")] = None,
    vectors: Path | None = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR")] = None,
    resume: bool = False,
    seeds: Annotated[int | None, typer.Option(min=1)] = None,
    tasks: Annotated[str | None, typer.Option(metavar="A,B")] = None,
    tune: bool = False,
    rates: Path | None = None,
    set_: options.SetOption = None,
    device: str = "auto",
    layer_cache: options.LayerCacheOption = None,
    threads: options.ThreadsOption = None,
) -> Result:
    """Reproduce a table or figure of the paper at laptop scale.

    Tables have error bars and a static baseline, which needs --vectors. After an interruption, the
    same command with --resume continues; the training of a task from its last checkpoint.

    Args:
        data: Directory with one folder per data set.
        model: Model directory, or the name of a packaged model: en, ko; default: that of the
            experiment's language (ko for korean and figure1_korean).
        output: Tables, plots, runs and their models; default: experiments/NAME.
        resume: Continue the experiment in the output, or start it.
        seeds: Seeds of every task and condition; default: set for each task, fewer for controls.
        tasks: Run only these tasks of the experiment.
        tune: Tune the learning rate of each condition: try three with seed 0 and choose on a part
            of the training set.
        rates: Instead of --tune: the learning rates that an earlier command tuned, from its
            results.json or its folder.
    """
    from elmokit.experiments.run_experiment import ExperimentOptions, Progress, run_experiment

    names = tuple(name.strip() for name in (tasks or "").split(",") if name.strip())
    if tasks is not None and not names:
        raise InputError(f"--tasks names no task, got {tasks!r}. Leave it out to run all of them.")
    target = output or Path("experiments") / name
    run_options = ExperimentOptions(
        data_dir=data, output=target, resume=resume, model=model, vectors=vectors,
        seeds=seeds, tune=tune, rates=rates, device=device, overrides=tuple(set_ or ()),
        tasks=names, cache_dir=layer_cache, command=shlex.join(["elmokit", *sys.argv[1:]]),
    )  # fmt: skip
    choose_threads(threads)
    with progress_bar("runs") as update:

        def show(progress: Progress) -> None:
            if progress.is_message:
                typer.echo(progress.text, err=True)
            else:
                update(progress.done, total=progress.total, status=progress.text)

        report = run_experiment(name, run_options, show)
    note = f"Written: {', '.join(map(str, report.files))}"
    return Result(report.results, [report.markdown], note=note)
