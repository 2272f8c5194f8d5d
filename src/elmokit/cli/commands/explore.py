"""`elmokit explore`: a page that looks inside a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.cli.threads import choose_threads
from elmokit.errors import InputError


def explore(
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", "-m", metavar="MODEL",
            help="Model directory or name, repeatable; default: the packaged models.",
        ),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A training run, also while it trains; repeatable."),
    ] = None,
    task: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="A run of `elmokit train`; repeatable."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 8765,
    show: Annotated[
        bool, typer.Option("--open", help="Open the page in the default browser.")
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the page as static files instead of serving it."),
    ] = None,
    threads: options.ThreadsOption = None,
    json: Annotated[
        bool, typer.Option("--json", help="With --export: print what was written.")
    ] = False,
) -> None:  # fmt: skip
    """Look inside a model in the browser: a page on this machine, or a folder of static files.

    The browser itself runs models of up to 64 MB, so a folder written by --export works on any web
    server, and nothing that is typed leaves the browser. Larger models, training runs and tasks
    need the server. It listens on this machine only, unless --host says otherwise; it has no
    passwords. Ctrl-C ends it.
    """
    from elmokit.weights.locate import packaged_models

    names = model or packaged_models()
    if export is not None:
        from elmokit.explorer.export import export_explorer

        if run or task:
            raise InputError("--export writes models only: --run and --task need the server.")
        report = export_explorer(names, export)
        if json:
            emit_json(report)
        else:
            typer.echo(
                f"{report.directory}: {report.num_files} files, {report.num_bytes:,} bytes, models "
                f"{', '.join(report.models)}. Serve it with any web server, such as: python -m "
                f"http.server -d {report.directory}"
            )
        return
    choose_threads(threads)
    server = _server(names, run or [], task or [], host=host, port=port)
    typer.echo(f"{server.url}  (Ctrl-C ends it)", err=True)
    if show:
        import webbrowser

        webbrowser.open(server.url)
    try:
        server.serve_forever()
    finally:
        server.server_close()


def _server(names: list[str], runs: list[Path], tasks: list[Path], *, host: str, port: int) -> Any:
    from elmokit.explorer.calls import Calls, check_run_dir
    from elmokit.explorer.catalog import catalog, load_explored
    from elmokit.explorer.server import ExplorerServer
    from elmokit.tasks.runs.task_run import TaskRun

    for one in runs:
        check_run_dir(one)
    run_dirs = dict(zip(_names(runs), runs, strict=True))
    task_runs = {name: TaskRun.load(path) for name, path in zip(_names(tasks), tasks, strict=True)}
    models = load_explored(names)
    found = catalog(
        models, served=True,
        runs=[{"name": name, "title": name} for name in run_dirs],
        tasks=[
            {"name": name, "title": name, "task": run.task.name}
            for name, run in task_runs.items()
        ],
    )  # fmt: skip
    calls = Calls(models, runs=run_dirs, tasks=task_runs)
    return ExplorerServer(found, models, calls, host=host, port=port)


def _names(paths: list[Path]) -> list[str]:
    """Return a name for each directory: its own, numbered if it occurs twice."""
    own = [path.resolve().name for path in paths]
    return [
        name if own.count(name) == 1 else f"{name}-{own[: i + 1].count(name)}"
        for i, name in enumerate(own)
    ]
