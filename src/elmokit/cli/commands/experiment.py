"""`elmokit experiment`: a table or figure of the paper, at the size of a laptop."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli.options import (
    DeviceOption,
    JsonOption,
    LayerCacheOption,
    ModelOption,
    SetOption,
    ThreadsOption,
)
from elmokit.cli.output import (
    Progress,
    emit_json,
    progress_bar,
    say_what_is_safe,
    use_threads,
)

if TYPE_CHECKING:
    from elmokit.experiments.runs.runner import Advance


def experiment(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="table1, table2, table3, table4, table5, table6, figure1, figure2 or korean.",
        ),
    ],
    *,
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the data sets, a folder each.")
    ] = Path("data"),
    model: ModelOption = None,
    vectors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Static word vectors, needed: the baseline, and beside the biLM."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="For tables and pictures; default: experiments/NAME. Runs go to DIR/../runs.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of every cell.", min=1)] = 3,
    minutes: Annotated[
        float | None, typer.Option(help="Begin nothing that would not end within this time.")
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(metavar="A,B", help="Some of the experiment's tasks.")
    ] = None,
    tune: Annotated[
        bool,
        typer.Option("--tune", help="Choose each condition's learning rate of three, by seed 0."),
    ] = False,
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="Keep the task models in DIR/models.")
    ] = False,
    set_: SetOption = None,
    device: DeviceOption = "auto",
    layer_cache: LayerCacheOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Run a table or figure of the paper, scaled down, with error bars and a static baseline.

    Stopped at any time, the same command goes on after the last finished run.
    """  # fmt: skip
    from elmokit.experiments.experiment import (
        ExperimentOptions,
        Listeners,
        run_experiment,
    )

    use_threads(threads)
    target = output or Path("experiments") / name
    options = ExperimentOptions(
        data_dir=data,
        output=target,
        model=model,
        vectors=vectors,
        seeds=seeds,
        minutes=minutes,
        tasks=tuple(task.strip() for task in (tasks or "").split(",") if task.strip()),
        tune=tune,
        keep_models=keep_models,
        overrides=tuple(set_ or ()),
        device=device,
        cache_dir=layer_cache,
        command=shlex.join(["elmokit", *sys.argv[1:]]),
    )

    def what_is_safe() -> str:
        return f"Finished runs are safe in {target.parent / 'runs'}; the same command goes on."

    with say_what_is_safe(what_is_safe), progress_bar("runs") as update:
        shown = _Shown(update)
        report = run_experiment(
            name,
            options,
            Listeners(
                on_plan=lambda text: typer.echo(text, err=True),
                on_advance=shown.advance,
                on_status=shown.status,
            ),
        )
    if json:
        emit_json(report.results)
        return
    typer.echo(report.markdown)
    typer.echo(f"Written: {', '.join(map(str, report.files))}", err=True)


class _Shown:
    """The progress bar of the runs, with what the current one does beside it.

    Args:
        update: Of the bar.
    """

    def __init__(self, update: Progress) -> None:
        self._update = update
        self._done, self._total, self._run = 0, 0, ""

    def advance(self, advance: "Advance") -> None:
        """Show that a run begins, or write the score of one that has ended."""
        self._done, self._total = advance.done, advance.total
        self._run = advance.run.describe()
        left = advance.seconds_left
        if advance.result is None:
            self.status("begins")
            return
        time = "" if left is None else f"; about {left / 60:.0f} min left"
        typer.echo(
            f"{advance.done} of {advance.total} runs: {self._run}: {advance.result.metric} "
            f"{advance.result.value:.2f} in {advance.result.wall_seconds:.0f} s{time}",
            err=True,
        )

    def status(self, text: str) -> None:
        """Show what the current run does."""
        self._update(self._done, total=self._total, status=f"{self._run}: {text}")
