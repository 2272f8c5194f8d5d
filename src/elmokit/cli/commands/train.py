"""`elmokit train`: a task model on the layers of a biLM; `predict` and `evaluate` with it."""

from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmokit.cli import options
from elmokit.cli.output import Result, emit_json, progress_bar
from elmokit.cli.threads import choose_threads
from elmokit.errors import InputError, counted
from elmokit.tasks.registry import TASKS, EmbeddingKind, find_task

if TYPE_CHECKING:
    from elmokit.tasks.runs.training import EpochReport, TaskStep

_TASKS = "; ".join(f"{name}: {entry.summary}" for name, entry in TASKS.items()) + "."


def train(
    task: Annotated[str, typer.Argument(metavar="TASK", help=_TASKS)],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="RUN", callback=options.expanded)
    ],
    data: Annotated[Path | None, typer.Option(metavar="DIR")] = None,
    train: Path | None = None,
    dev: Path | None = None,
    model: options.ModelOption = None,
    embeddings: EmbeddingKind | None = None,
    vectors: Path | None = None,
    epochs: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Annotated[
        int | None, options.seed_option("of weights, order and dropout; default: 0")
    ] = None,
    resume: bool = False,
    set_: options.SetOption = None,
    precision: str = "fp32",
    device: str = "auto",
    layer_cache: options.LayerCacheOption = None,
    threads: options.ThreadsOption = None,
) -> Result:
    """Train a task model and keep the epoch with the best dev score.

    The biLM is frozen. Its layers are computed once and cached on disk. After Ctrl-C, --resume
    continues.

    Args:
        output: Directory for the run.
        data: Directory with one train… and one dev… file.
        train: Training set, instead of the one in --data.
        dev: Dev set, instead of the one in --data.
        embeddings: Word inputs: elmo, static, static_output, static_projected, layer0, random, top,
            average or none; default: elmo.
        precision: Of the biLM: fp32, bf16 or int8.
        epochs: Maximum number of epochs.
    """
    from elmokit.config import from_dict
    from elmokit.tasks.formats.data_files import find_split
    from elmokit.tasks.runs.run_dir import TaskRunConfig
    from elmokit.tasks.runs.train_task import train_task

    named = {
        "inputs.embeddings": embeddings, "train.epochs": epochs, "train.seed": seed,
    }  # fmt: skip
    config = from_dict(
        TaskRunConfig, {"task": task}, source="the options",
        overrides=options.overrides(named, set_),
    )  # fmt: skip
    suffixes = find_task(config.task).suffixes
    if data is None and (train is None or dev is None):
        raise InputError("Give --data DIR, or both --train FILE and --dev FILE.")
    train_path, dev_path = (
        path or find_split(data or Path(), split, suffixes)
        for path, split in ((train, "train"), (dev, "dev"))
    )
    choose_threads(threads)
    last_score = ""

    def on_step(step: "TaskStep") -> None:
        status = f"epoch {step.epoch} · loss {step.loss:.4f}{last_score}"
        update(step.done, total=step.total, description="training", status=status)

    def on_epoch(report: "EpochReport") -> None:
        nonlocal last_score
        best = " (best)" if report.is_best else ""
        last_score = f" · dev {report.dev.metric} {report.dev.value:.2f}{best}"

    with progress_bar("layers") as update:
        result = train_task(
            config, train_path, dev_path, output, model=model, precision=precision,
            vectors=vectors, device=device, cache_dir=layer_cache, resume=resume,
            save_on_signals=True, on_step=on_step,
            on_epoch=on_epoch,
            on_layers=lambda done, total: update(done, total=total, description="layers"),
        )  # fmt: skip
    best = result.best
    figures = {
        "run": result.run_dir, "metric": best.dev.metric, "dev": best.dev.value,
        **best.dev.details, "best_epoch": best.epoch, "epochs": result.num_epochs,
        "seconds": result.seconds,
    }  # fmt: skip
    lines = [
        f"dev {best.dev.metric} {best.dev.value:.2f} after epoch {best.epoch} of "
        f"{result.num_epochs}; the model is in {result.run_dir}"
    ]
    return Result(figures, lines)


def predict(
    run: options.TaskRunArgument,
    text: options.TextArgument,
    *,
    text_field: options.TextFieldOption = None,
    tokenizer: str | None = None,
    model: options.RunModelOption = None,
    precision: str | None = None,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    by_document: bool = False,
    json: bool = False,
) -> None:
    """Predict with a trained task model on raw text.

    Prints one answer per line or record of TEXT: tagged words, brackets or labels. With --json, an
    answer has the text as written, tokens with character offsets, and probabilities: softmax of
    labels and tags; for spans, the share of the legal tag sequences with the span (ner: by its
    CRF).

    Args:
        precision: Arithmetic of the biLM: fp32, bf16 or int8; default: as in training.
        by_document: Give a name one type throughout a document, and find it wherever it is (ner).
            A document ends with its file, and at an empty line of a text file.
        json: Print one JSON object per line, with probabilities.
    """
    from elmokit.embed.numbered_lines import NumberedLines
    from elmokit.files.sources import find_files
    from elmokit.files.text_records import WHOLE_LINES
    from elmokit.tasks.runs.task_run import TaskRun

    trained = TaskRun.load(run, model=model, precision=precision, device=device)
    if text_field is None and trained.task.num_texts > 1:
        text_field = WHOLE_LINES  # with tabs between the texts
    is_empty = True
    for files in [[file] for file in find_files(text)] if by_document else [text]:
        places, texts = tee(NumberedLines(files, text_field=text_field).located())
        names, lines = (str(place) for place, _ in places), (line for _, line in texts)
        how = {"tokenizer": tokenizer, "names": names, "by_document": by_document}
        for answer in trained.predict_json(lines, **how) if json else trained.predict(lines, **how):
            is_empty = False
            if json:
                emit_json(answer)
            else:
                typer.echo(trained.task.show(*answer))
    if is_empty:
        raise InputError(f"Nothing to predict: no line in {', '.join(map(str, text))}.")


def evaluate(
    run: options.TaskRunArgument,
    data: Annotated[Path, typer.Argument(metavar="DATA")],
    *,
    model: options.RunModelOption = None,
    precision: str | None = None,
    device: str = "auto",
    layer_cache: options.LayerCacheOption = None,
    threads: options.ThreadsOption = None,
) -> Result:
    """Score a trained task model on labeled data, in total and by tag, type of span or label.

    Args:
        data: File with gold labels, in the task's format.
        precision: Arithmetic of the biLM: fp32, bf16 or int8; default: as in training.
    """
    from elmokit.tasks.runs.run_dir import run_hash
    from elmokit.tasks.runs.task_run import TaskRun
    from elmokit.weights.locate import TASK_RUNS

    trained = TaskRun.load(
        run, model=model, precision=precision, device=device, cache_dir=layer_cache
    )
    run_sha256 = run_hash(TASK_RUNS.find(run))
    score = trained.evaluate(data)
    data_of_score = {"metric": score.metric, "value": score.value, **score.details}
    data_of_score["examples"] = len(score.counts)
    lines = [f"{score.metric:<12}{score.value:8.2f}   ({counted(len(score.counts), 'example')})"]
    lines += [f"{name:<12}{value:8.2f}" for name, value in score.details.items()]
    if score.by_label:
        data_of_score["by_label"] = score.by_label
        width = max(12, 2 + max(map(len, score.by_label)))
        lines.append(f"\n{'':<{width}}{'precision':>10}{'recall':>8}{'F1':>8}{'gold':>8}")
        lines += [
            f"{label:<{width}}{part.precision:10.2f}{part.recall:8.2f}{part.f1:8.2f}{part.gold:8,}"
            for label, part in score.by_label.items()
        ]
    made = {"run_sha256": run_sha256, **trained.result_metadata()}
    return Result({**data_of_score, "metadata": made}, lines)
