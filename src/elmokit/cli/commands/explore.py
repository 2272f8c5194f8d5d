"""`elmokit explore`: a page that looks inside a model."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.errors import InputError, MissingExtraError, counted, quoted, refuse

if TYPE_CHECKING:
    from elmokit.tasks.runs.task_run import TaskRun

HOST, PORT, WEIGHTS = "127.0.0.1", 8765, "int6"


def explore(
    *,
    model: Annotated[list[str] | None, typer.Option("--model", "-m", metavar="MODEL")] = None,
    run: Annotated[list[Path] | None, typer.Option(metavar="DIR")] = None,
    task: Annotated[list[Path] | None, typer.Option(metavar="RUN")] = None,
    corpus: list[Path] | None = None,
    host: str = HOST,
    port: Annotated[int, typer.Option(min=0, max=65535)] = PORT,
    show: Annotated[bool, typer.Option("--open")] = False,
    export: Annotated[Path | None, typer.Option(metavar="DIR")] = None,
    weights: Literal["int6", "int8", "stored"] = WEIGHTS,
    threads: options.ThreadsOption = None,
    json: bool = False,
) -> None:  # fmt: skip
    """Look inside a model in the browser: a page on this machine, or a folder of static files.

    The browser itself runs models of up to 64 MB, so a folder written by --export works on any web
    server, and nothing that is typed leaves the browser. Larger models, training runs and tasks
    need the server, which is in the extra `serve`. It listens on this machine only, unless --host
    says otherwise; it has no passwords. Ctrl-C stops it.

    Args:
        model: Model directory or name, repeatable; default: the packaged models.
        run: A training run, even while it is training; repeatable.
        task: A run of `elmokit train`, or a packaged tagger; repeatable; default: the packaged
            taggers, loaded when they are first used. The whole file of a run's static vectors is
            held in memory.
        corpus: Text in which to find neighbors of words; repeatable.
        host: Address to listen on.
        port: Port; 0 chooses a free one.
        show: Open the page in the default browser.
        export: Write the page as static files instead of serving it.
        weights: With --export: round the weights and compress them, or copy the model's files.
        json: With --export: print the result as one JSON object.
    """
    from elmokit.weights.locate import packaged_models

    names = model or packaged_models()
    refuse({
        "--weights and --json belong to --export: give --export DIR.": (
            export is None and (json or weights != WEIGHTS)
        ),
        "--export writes models only: --run, --task and --corpus need the server.": (
            export is not None and bool(run or task or corpus)
        ),
        "--export writes files and serves nothing: leave out --open, --host and --port.": (
            export is not None and (show or (host, port) != (HOST, PORT))
        ),
    })  # fmt: skip
    if export is None:
        _serve(names, run or [], task or [], corpus or [], host=host, port=port, show=show)
        return
    from elmokit.web.page.export import export_explorer

    report = export_explorer(names, export, weights=weights)
    if json:
        emit_json(report)
        return
    typer.echo(
        f"{report.output}: {counted(report.num_files, 'file')}, {report.num_bytes:,} bytes, "
        f"models {', '.join(report.models)}. Serve it with any web server, such as: "
        f"python -m http.server -d {quoted(report.output)}"
    )


def _serve(
    names: list[str], runs: list[Path], tasks: list[Path], corpus: list[Path], *, host: str,
    port: int, show: bool,
) -> None:  # fmt: skip
    try:
        from elmokit.web.page.calls import page_router
        from elmokit.web.server import Server
    except ModuleNotFoundError as error:
        missing = MissingExtraError(str(error.name), extra="serve")
        missing.add_note("Without it, --export DIR writes the page for any other web server.")
        raise missing from error
    from elmokit.files.sources import STANDARD_INPUT, find_files, is_read_once
    from elmokit.training.curves import check_run_dir
    from elmokit.web.page.calls import Calls
    from elmokit.web.page.export import catalog, page_files
    from elmokit.web.page.models import distinct_names, load_explored
    from elmokit.web.startup import ServerSettings, listen, load_task_run, url_of
    from elmokit.weights.locate import TASK_RUNS

    for directory in runs:
        check_run_dir(directory)
    texts = find_files(corpus) if corpus else []
    if STANDARD_INPUT in texts or (len(names) > 1 and any(map(is_read_once, texts))):
        raise InputError(
            "--corpus is read once for each model: give a file, not standard input or a pipe."
        )

    def named(paths: list[Path]) -> dict[str, Path]:
        names = distinct_names(path.resolve().name for path in paths)
        return dict(zip(names, paths, strict=True))

    run_dirs = named(runs)
    loaders: dict[str, Callable[[], TaskRun]] = {}
    kinds: dict[str, str] = {}
    for name, path in named(tasks or [Path(name) for name in TASK_RUNS.names()]).items():
        loaders[name] = cache(partial(load_task_run, path))
        # one that was named must be there; those of the package, named for their tasks, may wait
        kinds[name] = loaders[name]().task.name if tasks else name.split("-")[0]
    models = load_explored(names)
    content = catalog(models, served=True, runs=run_dirs, corpus=texts, tasks=kinds)
    calls = Calls(models, runs=run_dirs, tasks=loaders, corpus=texts)
    Thread(target=calls.load_tokenizers, daemon=True).start()
    with listen(host, port) as listener:
        url = url_of(host, listener, advice="the page has no passwords")
        typer.echo(f"{url}  (Ctrl-C to stop)", err=True)
        if show:
            import webbrowser

            webbrowser.open(url)
        server = Server(
            page_router(page_files(content, models), calls), ServerSettings(), host=host
        )
        server.run(sockets=[listener])
