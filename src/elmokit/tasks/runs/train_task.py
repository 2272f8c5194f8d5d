"""`train_task`: labeled data in, the directory of a trained task out."""

import logging
from dataclasses import dataclass
from pathlib import Path

from elmokit.tasks.inputs.task_bilm import OnLayers
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.prepared import TaskFiles, prepare_task
from elmokit.tasks.runs.run_dir import write_best
from elmokit.tasks.runs.saved_training import OnEpoch, SavedTraining, open_run_dir
from elmokit.tasks.runs.training import EpochReport, OnStep
from elmokit.tasks.task import TaskScore
from elmokit.training.schedules import Limits

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskResult:
    """Result of a training."""

    run_dir: Path
    best: EpochReport
    num_epochs: int
    seconds: float
    """Training and scoring the dev set, without computing kept layers."""
    is_complete: bool = True
    """False if ``minutes`` ended it before ``train.epochs`` and patience did."""
    test: TaskScore | None = None
    """Of the best epoch on the test set, if one was given and the training is complete."""
    resumed_seconds: float = 0.0
    """Part of `seconds`, before the training was last resumed."""


def train_task(
    config: TaskRunConfig,
    train_path: Path,
    dev_path: Path,
    run_dir: Path,
    *,
    model: str | None = None,
    precision: str = "fp32",
    vectors: Path | None = None,
    test_path: Path | None = None,
    device: str = "auto",
    cache_dir: Path | None = None,
    resume: bool = False,
    minutes: float | None = None,
    save_on_signals: bool = False,
    keep_static: bool = True,
    on_epoch: OnEpoch = lambda report: None,
    on_step: OnStep = lambda step: None,
    on_layers: OnLayers | None = None,
) -> TaskResult:
    """Train a task model on the layers of a frozen biLM, or with ``train.finetune_bilm`` both.

    After every epoch ``run_dir`` has the best model so far, and a checkpoint. In fp32 on the CPU, a
    resumed run has bit for bit the scores of one that was never stopped.

    Args:
        config: What is trained.
        train_path: Training examples, in the task's format.
        dev_path: For early stopping.
        run_dir: A new directory, or one to resume. What a training left that was stopped in its
            first epoch is replaced.
        model: Directory or name of the biLM; none: the English one in the package. Conditions
            without a biLM use only its tokenizer and character settings, if it is given.
        precision: Of the biLM.
        vectors: File of static word vectors, see `read_vectors`; required by the ``static…``
            conditions, refused by ``none``.
        test_path: Scored once, with the best epoch, when the training is complete; not part of the
            run, so a resumed one may be given another.
        device: Of the task model and the biLM; ``auto`` is CUDA if available. Kept layers stay on
            the CPU.
        cache_dir: Where layers are kept.
        resume: Continue from the last checkpoint in ``run_dir``.
        minutes: Limit of training and scoring, over all parts of a resumed run; the unfinished
            epoch is scored like the others.
        save_on_signals: On Ctrl-C, SIGTERM and SIGHUP, finish the update and write a checkpoint.
        keep_static: False leaves the static vectors out of ``run_dir``; they are then read from
            ``vectors`` whenever the run is used.
        on_epoch: Called after each epoch.
        on_step: Called after each update, and while the dev set is scored.
        on_layers: Called while layers are computed, with the number of sentences done and in total.

    Raises:
        FileExistsError: if ``run_dir`` has a model and ``resume`` is not set, or other files.
        ConfigError: if a resumed run has other settings or other data.
        Stopped: after a signal and its checkpoint.
        FileNotFoundError: if a file or the model is missing.
        FormatError: if the data is damaged.
        ValueError: if the condition lacks what it reads, or is given what it does not read; if the
            task cannot read layers where ``config`` says.
        InputError: if the training or dev set is standard input or a pipe; if the training set has
            a single label; if the dev or test set has none of those of the training set; if there
            are static vectors of none of the words; for a ``lowercase_share`` of a task that does
            not tag words.
        FloatingPointError: if the loss is not finite.
    """
    Limits(minutes=minutes)
    prepared = prepare_task(
        config, TaskFiles(train=train_path, dev=dev_path, test=test_path, vectors=vectors),
        model=model, precision=precision, device=device, cache_dir=cache_dir, on_layers=on_layers,
    )  # fmt: skip
    static = prepared.static
    kept = static if static is None or keep_static else static.first(0)

    def write_epoch(report: EpochReport) -> None:
        found = report.dev
        score = {"metric": found.metric, "value": found.value, **found.details}
        write_best(run_dir, prepared.metadata() | {"dev": score}, prepared.network, kept)

    with open_run_dir(run_dir, prepared.config, prepared.origin(), resume=resume) as checkpoint:
        seconds = None if minutes is None else 60 * minutes
        training = prepared.build_training(seconds=seconds, checkpoint=checkpoint)
        resumed_seconds = training.progress.seconds
        best = SavedTraining(
            training=training, run_dir=run_dir, write_best=write_epoch, checkpoint=checkpoint,
            save_on_signals=save_on_signals, on_step=on_step, on_epoch=on_epoch,
        ).run()  # fmt: skip
    num_epochs = training.epoch + bool(training.losses)
    if best.dev.value == 0:
        log.warning(
            "%s on %s is 0 after every epoch (%d): no gold answer was found. If the file has any, "
            "train for more epochs, on more examples, or with another train.learning_rate.",
            best.dev.metric, dev_path, num_epochs,
        )  # fmt: skip
    return TaskResult(
        run_dir, best, num_epochs, training.seconds, training.is_complete,
        prepared.score_test() if training.is_complete else None, resumed_seconds,
    )  # fmt: skip
