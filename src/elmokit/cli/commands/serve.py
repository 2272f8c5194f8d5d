"""`elmokit serve`: a model over HTTP; `explore`: a page that looks inside a model."""

import logging
import os
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, emit_json
from elmokit.errors import InputError, MissingExtraError, counted, quoted, refuse
from elmokit.web.startup import ServerSettings

if TYPE_CHECKING:
    from elmokit.tasks.runs.task_run import TaskRun

KEY_VARIABLE = "ELMOKIT_API_KEY"
HOST, PORT, WEIGHTS = "127.0.0.1", 8765, "int6"


def serve(
    *,
    model: options.ModelOption = None,
    task: Annotated[list[str] | None, typer.Option(metavar="[NAME=]RUN")] = None,
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8080,
    api_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Key that every request except /health must send. Other users can see the command "
            f"line; the environment variable {KEY_VARIABLE} is safer.",
        ),
    ] = None,
    allow_host: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None,
    name: str | None = None,
    layers: str | None = None,
    pooling: Annotated[str | None, typer.Option("--pooling", "--pool")] = None,
    normalize: bool = True,
    state: str = "reset",
    precision: str = "fp32",
    max_words: Annotated[int, typer.Option(min=1)] = ServerSettings.max_words,
    max_texts: Annotated[int, typer.Option(min=1)] = ServerSettings.max_texts,
    batch_tokens: Annotated[int, typer.Option(min=1)] = ServerSettings.batch_tokens,
    max_requests: Annotated[int, typer.Option(min=1)] = ServerSettings.max_requests,
    timeout: Annotated[float, typer.Option(min=0.1)] = ServerSettings.timeout_seconds,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    json: bool = False,
) -> None:  # fmt: skip
    """Serve a model over HTTP: the APIs of OpenAI (/v1/embeddings) and Text Embeddings Inference.

    POST /embed (a vector per text), /embed_all (per word), /tokenize, /predict/NAME; GET /info,
    /health, /metrics. Requests that arrive together are computed together. It listens on this
    machine only, unless --host says otherwise. Ctrl-C or SIGTERM stops it after the accepted
    requests have been answered.

    Args:
        task: A run of `elmokit train`, for /predict/NAME; default: the directory's name.
            Repeatable. The whole file of its static vectors is held in memory.
        allow_host: Host name that clients may use for the server; repeatable.
        name: Name of the model for clients; default: its own.
        pooling: One vector per text: sif (rare words count more; best for similarity), or mean or
            max over its words; default: sif, or mean for a model without vocabulary.
        layers: top, average, or a layer number; default: average, with --pooling sif 0 for pooled
            vectors.
        normalize: Scale pooled vectors to length 1.
        state: LSTM state before each text: reset (zeros) or warm (fixed).
        max_words: Maximum words per text.
        max_texts: Maximum texts per request.
        max_requests: Maximum requests at once; more get status 429.
        timeout: Seconds after which a request gets status 503.
        json: Print URL and name of the model as one JSON object.
    """
    try:
        from elmokit.web.api.routes import Service
        from elmokit.web.server import Server
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), extra="serve") from error
    from elmokit.embed import word_checks
    from elmokit.embed.embedder import Embedder
    from elmokit.text.word_vocab import COPY_AGAIN, WordVocab
    from elmokit.web.startup import listen, url_of
    from elmokit.weights.locate import find_model
    from elmokit.weights.model_files import VOCAB_NAME

    word_checks.log.setLevel(logging.ERROR)  # its warnings quote words, here of clients
    directory = find_model(model)
    key = os.environ.get(KEY_VARIABLE) if api_key is None else api_key
    settings = ServerSettings(
        name=name or directory.resolve().name, api_key=key,
        allowed_hosts=allow_host or (), pooling=pooling,
        layers=None if layers is None else options.layers_of(layers),
        normalize=normalize, state=state, max_words=max_words, max_texts=max_texts,
        batch_tokens=batch_tokens, max_requests=max_requests, timeout_seconds=timeout,
    )  # fmt: skip
    with listen(host, port) as listener:
        embedder = Embedder.load(directory, device=device, precision=precision)
        # checks the options; loads tokenizer and warm state
        embedder.embed(["Ready."], state=settings.state)
        path = directory / VOCAB_NAME
        vocab = WordVocab.read(path, advice=COPY_AGAIN) if path.exists() else None
        service = Service(embedder, settings, runs=_runs(task or [], device), vocab=vocab)
        advice = "--api-key requires a key" if settings.api_key is None else None
        url = url_of(host, listener, advice=advice)
        if json:
            emit_json({"url": url, "model": settings.name})
        else:
            typer.echo(f"{url}  {settings.name!r}  (Ctrl-C to stop)", err=True)
        server = Server(service.router(), settings, host=host, on_error=service.count_error)
        server.run(sockets=[listener])


def _runs(options: list[str], device: str) -> "dict[str, TaskRun]":
    """Load runs; a name is given before an equals sign, or the directory's."""
    from elmokit.web.startup import load_task_run

    runs: dict[str, TaskRun] = {}
    for option in options:
        named = None if Path(option).exists() else re.fullmatch(r"([\w.-]+)=(.+)", option)
        name, path = (named[1], named[2]) if named else (Path(option).resolve().name, option)
        if name in runs:
            raise InputError(f"Two runs are called {name!r}: name one of them, NAME={path}.")
        runs[name] = load_task_run(path, device=device)
    return runs


def explore(
    *,
    model: Annotated[list[str] | None, typer.Option("--model", "-m", metavar="MODEL")] = None,
    run: Annotated[list[Path] | None, typer.Option(metavar="DIR")] = None,
    task: Annotated[list[Path] | None, typer.Option(metavar="RUN")] = None,
    host: str = HOST,
    port: Annotated[int, typer.Option(min=0, max=65535)] = PORT,
    show: Annotated[bool, typer.Option("--open")] = False,
    export: Annotated[Path | None, typer.Option(metavar="DIR")] = None,
    weights: Literal["int6", "int8", "stored"] = WEIGHTS,
    threads: options.ThreadsOption = None,
    json: bool = False,
) -> Result | None:  # fmt: skip
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
        "--export writes models only: --run and --task need the server.": (
            export is not None and bool(run or task)
        ),
        "--export writes files and serves nothing: leave out --open, --host and --port.": (
            export is not None and (show or (host, port) != (HOST, PORT))
        ),
    })  # fmt: skip
    if export is None:
        _serve(names, run or [], task or [], host=host, port=port, show=show)
        return None
    from elmokit.web.page.export import export_explorer

    report = export_explorer(names, export, weights=weights)
    text = (
        f"{report.output}: {counted(report.num_files, 'file')}, {report.num_bytes:,} bytes, "
        f"models {', '.join(report.models)}. Serve it with any web server, such as: "
        f"python -m http.server -d {quoted(report.output)}"
    )
    return Result(report, [text])


def _serve(
    names: list[str], runs: list[Path], tasks: list[Path], *, host: str, port: int, show: bool
) -> None:
    try:
        from elmokit.web.page.calls import page_router
        from elmokit.web.server import Server
    except ModuleNotFoundError as error:
        missing = MissingExtraError(str(error.name), extra="serve")
        missing.add_note("Without it, --export DIR writes the page for any other web server.")
        raise missing from error
    from elmokit.training.curves import check_run_dir
    from elmokit.web.page.calls import Calls
    from elmokit.web.page.export import catalog, page_files
    from elmokit.web.page.models import distinct_names, load_explored
    from elmokit.web.startup import ServerSettings, listen, load_task_run, url_of
    from elmokit.weights.locate import TASK_RUNS

    for directory in runs:
        check_run_dir(directory)

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
    content = catalog(models, served=True, runs=run_dirs, tasks=kinds)
    calls = Calls(models, runs=run_dirs, tasks=loaders)
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
