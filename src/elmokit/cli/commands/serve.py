"""`elmokit serve`: a model over HTTP."""

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import emit_json
from elmokit.errors import InputError, MissingExtraError
from elmokit.web.startup import ServerSettings

if TYPE_CHECKING:
    from elmokit.tasks.runs.task_run import TaskRun

KEY_VARIABLE = "ELMOKIT_API_KEY"


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
        host: Address to listen on.
        port: Port; 0 chooses a free one.
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
        batch_tokens: Words per batch; does not affect the result.
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
    from elmokit.text import word_vocab
    from elmokit.text.word_vocab import COPY_AGAIN, WordVocab
    from elmokit.web.startup import listen, url_of
    from elmokit.weights.locate import find_model
    from elmokit.weights.model_files import VOCAB_NAME

    for module in (word_checks, word_vocab):  # their warnings quote words, here of clients
        logging.getLogger(module.__name__).setLevel(logging.ERROR)
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
