"""A whole experiment in one call: check, plan, run, score, and write a report after every run."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elmokit.errors import ConfigError, InputError
from elmokit.experiments.comparison import Findings
from elmokit.experiments.definitions import SEEDS, Experiment, find_experiment
from elmokit.experiments.execution import ProbeRuns, Resources, TaskRuns
from elmokit.experiments.inputs import (
    HashedFile,
    find_bilm,
    find_data,
    find_probe_data,
    find_test_files,
    find_vectors,
    task_metadata,
)
from elmokit.experiments.plan import (
    LearningRates,
    PlannedRun,
    plan_probe,
    plan_tasks,
)
from elmokit.experiments.report import REPORT_FILES, Origin, Report, write_report
from elmokit.experiments.runs import RunResult, RunStore
from elmokit.experiments.tuning import (
    ALL_DIVERGED,
    NOT_TUNED,
    best_rates,
    read_tuned_rates,
    tuning_runs,
)
from elmokit.files.hashing import file_sha256
from elmokit.files.json_files import read_json, write_json
from elmokit.files.location import counted
from elmokit.files.locks import directory_lock
from elmokit.files.pictures import check_matplotlib
from elmokit.inference.precision import pick_device
from elmokit.jobs.identity import changes
from elmokit.version import __version__

log = logging.getLogger(__name__)

JOB_FILE = "experiment.json"
"""What identifies the experiment in a folder, beside the report."""
RATE_SETTING = "train.learning_rate="
NO_TIME = "no time left"
MAX_CHANGES_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """User options of an experiment."""

    data_dir: Path
    """Folder with one folder per data set."""
    output: Path
    """Folder for the report; runs are stored in ``runs`` in it."""
    resume: bool = False
    """Go on if ``output`` holds this experiment; without it, such a folder is refused."""
    model: str | None = None
    """biLM directory; none: the packaged one of the experiment's language."""
    vectors: Path | None = None
    """Static word vectors, ideally of the same text as the biLM."""
    test_dir: Path | None = None
    """Folder like ``data_dir`` with a test file for each task; every finished run is scored on it,
    whatever ``minutes`` says."""
    seeds: int | None = None
    """Seeds of every task and condition; none: those of the settings."""
    minutes: float | None = None
    """Time limit for the whole experiment; none: no limit."""
    tasks: tuple[str, ...] = ()
    """Empty: all tasks of the experiment."""
    tune: bool = False
    """Try `RATE_FACTORS` for every condition with seed 0 and use the best on the held-out part."""
    rates: Path | None = None
    """Results of an earlier command, whose tuned learning rates are used instead of tuning."""
    overrides: tuple[str, ...] = ()
    """Dotted settings of `TaskRunConfig`; they override those of the experiment."""
    device: str = "auto"
    """Device for task models, biLMs and classifiers; ``auto`` is CUDA if available."""
    cache_dir: Path | None = None
    """Cache of layers; none: the user's cache folder."""
    command: str = ""
    """The command line, for the report."""

    def __post_init__(self) -> None:
        if self.seeds is not None and self.seeds < 1:
            raise InputError(f"`seeds` must be at least 1, got {self.seeds}.")
        if self.minutes is not None and not self.minutes > 0:  # nor NaN
            raise InputError(f"`minutes` must be above 0, got {self.minutes}.")
        if self.rates is not None and self.tune:
            raise InputError("Give `rates` or `tune`, not both: the given rates are tuned ones.")
        pick_device(self.device)  # raises

    @property
    def is_tuned(self) -> bool:
        """Whether learning rates are chosen on a part of the training set, here or before."""
        return self.tune or self.rates is not None


@dataclass(frozen=True)
class Advance:
    """A run that starts now or has just ended."""

    done: int
    """Number of runs with a result or a divergence."""
    total: int
    run: PlannedRun
    result: RunResult | None = None
    """None if the run starts now."""


@dataclass(frozen=True)
class Listeners:
    """Callbacks for the progress of an experiment."""

    on_plan: Callable[[str], None] = lambda text: None
    """Gets a description of the plan before the first run."""
    on_advance: Callable[[Advance], None] = lambda advance: None
    on_status: Callable[[str], None] = lambda text: None
    """Gets the activity of the current run."""


class OutOfTime(Exception):
    """A run was stopped at the time limit."""


def run_experiment(
    name: str, options: ExperimentOptions, listeners: Listeners = Listeners()
) -> Report:
    """Run or continue an experiment and return the report.

    ``results.json``, ``table.md`` and, if there is anything to draw, ``plot.png`` are written after
    every run. Finished runs are not repeated.

    Raises:
        ConfigError: before any run, if the output holds an experiment with other inputs or
            settings; says what differs.
        FileExistsError: before any run, if the output holds an experiment and ``resume`` is not
            set, or other files; if another process works there.
        FileNotFoundError: before any run, if data, test files, biLM or vectors are missing.
        FormatError: if a file is damaged.
        InputError: for an unknown name or an invalid option; before any run, if a training set
            cannot be divided, or a test file is of another task or the training file.
        MissingExtraError: before any run, if plots need matplotlib.
        Stopped: after a signal during the training of a task, and its checkpoint.
    """
    experiment = find_experiment(name)
    _check_free(options)
    session = _Session(experiment, options, listeners)
    options.output.mkdir(parents=True, exist_ok=True)
    busy = f"Another process works on the experiment in {options.output}. Wait for it to end."
    with directory_lock(options.output, busy=busy):
        return session.run()


def _check_free(options: ExperimentOptions) -> None:
    """Refuse an output with an experiment that is not to be resumed, or with foreign files."""
    output = options.output
    if (output / JOB_FILE).exists():
        if not options.resume:
            raise FileExistsError(
                f"{output} already holds an experiment. Add --resume to continue it, or give "
                "another --output."
            )
    elif present := [name for name in REPORT_FILES if (output / name).exists()]:
        raise FileExistsError(
            f"{output} has files that this experiment would replace: {', '.join(present)}. Move "
            "them away, or give another --output."
        )


class _Session:
    """One call of `run_experiment`."""

    def __init__(
        self, experiment: Experiment, options: ExperimentOptions, listeners: Listeners
    ) -> None:
        self.experiment, self.options, self.listeners = experiment, options, listeners
        self.tasks = experiment.select_tasks(options.tasks)
        if experiment.plot is not None:
            check_matplotlib()
        self.model = find_bilm(experiment, options.model)
        self.vectors = find_vectors(experiment, options.vectors)
        self.vectors_hash = file_sha256(self.vectors)
        self.store = RunStore(options.output / "runs")
        self.metadata: dict[str, dict[str, Any]] = {}
        self.test_files: dict[str, HashedFile] = {}
        self.earlier_rates: LearningRates = {}
        self.executor = self._executor()
        minutes = options.minutes
        self.deadline = None if minutes is None else time.monotonic() + 60 * minutes
        self.tuning = tuning_runs(experiment, self._plan_tasks) if options.tune else []
        self.runs: list[PlannedRun] = []
        self.waiting: dict[str, str] = {}
        """Why a planned run, by id, cannot start: it has no learning rate."""
        self.stopped: dict[str, str] = {}
        """Why a run, by id, has not ended."""
        self._known: tuple[dict[object, Any], dict[object, Any]] = ({}, {})

    def _executor(self) -> TaskRuns | ProbeRuns:
        """Find all data, and return what executes the runs."""
        options, probe = self.options, self.experiment.probe
        resources = Resources(
            store=self.store, samples_dir=options.output / "samples", model=self.model.path,
            vectors=self.vectors, device=options.device, cache_dir=options.cache_dir,
            on_work=self._on_work,
        )  # fmt: skip
        if probe is not None:
            if any((options.tune, options.rates, options.overrides, options.test_dir)):
                raise InputError(
                    f"{self.experiment.name} trains no task: remove --tune, --rates, --set and "
                    "--test."
                )
            find_probe_data(probe, options.data_dir)
            return ProbeRuns(resources=resources, settings=probe, data_dir=options.data_dir)
        files = find_data(options.data_dir, self.tasks)
        if options.test_dir is not None:
            self.test_files = find_test_files(options.test_dir, self.tasks, files, self.model.path)
        for task in self.tasks:
            self.metadata[task.dataset] = task_metadata(
                task, files[task.dataset], self.model, self.vectors_hash
            )
        if options.rates is not None:
            if any(text.replace(" ", "").startswith(RATE_SETTING) for text in options.overrides):
                raise InputError(f"--rates and --set {RATE_SETTING} both set the learning rate.")
            self.earlier_rates = read_tuned_rates(options.rates, self.experiment, self.tasks)
        return TaskRuns(
            resources=resources, tasks={task.dataset: task for task in self.tasks}, files=files,
            test_files=self.test_files,
        )  # fmt: skip

    def run(self) -> Report:
        self._plan()
        self._take_output()
        runs = self._all_runs()
        self.listeners.on_plan(
            f"{self.experiment.title}\n{counted(len(runs), 'run')} planned, {self._num_done(runs)} "
            f"of them already done; results go to {self.options.output}"
        )
        for run in self.tuning:
            self._settle(run)
        self._plan()
        for run in self.runs:
            if run.id not in self.waiting:
                self._settle(run)
                self._score_test(run)
        return self._write()

    def _all_runs(self) -> list[PlannedRun]:
        return list({run.id: run for run in (*self.tuning, *self.runs)}.values())

    def _num_done(self, runs: list[PlannedRun]) -> int:
        return sum(map(self.store.is_settled, runs))

    def _plan(self) -> None:
        """Plan all runs; with tuning, those of conditions without a learning rate must wait."""
        options, experiment = self.options, self.experiment
        if (probe := experiment.probe) is not None:
            folder = options.data_dir / probe.dataset
            files = [path for path in sorted(folder.iterdir()) if path.is_file()]
            self.runs = plan_probe(
                probe, seeds=options.seeds or SEEDS, bilm=self.model.metadata,
                data={path.name: file_sha256(path) for path in files},
                vectors_hash=self.vectors_hash,
            )  # fmt: skip
            return
        rates, diverged = self.earlier_rates, set()
        if options.tune:
            rates, diverged = best_rates(self.tuning, self.store)
        self.runs = self._plan_tasks(experiment, rates, options.seeds)
        self.waiting = {}
        tuned = {condition.name: condition.tuned_name for condition in experiment.conditions}
        for run in self.runs:
            key = run.task, run.dataset, tuned[run.condition]
            if options.tune and key not in rates:
                self.waiting[run.id] = ALL_DIVERGED if key in diverged else NOT_TUNED

    def _plan_tasks(
        self, experiment: Experiment, rates: LearningRates, seeds: int | None
    ) -> list[PlannedRun]:
        return plan_tasks(
            experiment, self.tasks, metadata=self.metadata, overrides=self.options.overrides,
            seeds=seeds, learning_rates=rates,
        )  # fmt: skip

    def _take_output(self) -> None:
        """Record what identifies the experiment, or check that it is still the same.

        Tasks, seeds and test files may be added or left out.
        """
        _check_free(self.options)  # again: another process may have worked here since
        path, identity = self.options.output / JOB_FILE, self._identity()
        if path.exists():
            recorded = read_json(path, advice="Give another --output.", required=identity)
            tasks = recorded["tasks"]
            common = {name: task for name, task in tasks.items() if name in identity["tasks"]}
            present = {name: identity["tasks"][name] for name in common}
            differences = changes(recorded | {"tasks": common}, identity | {"tasks": present})
            if differences:
                raise ConfigError(
                    f"{self.options.output} holds another experiment: "
                    f"{'; '.join(map(str, differences[:MAX_CHANGES_SHOWN]))}. Give the earlier "
                    "options, or another --output."
                )
            identity["tasks"] = tasks | identity["tasks"]
        write_json(path, identity)

    def _identity(self) -> dict[str, Any]:
        """Return what must be the same when the experiment is resumed."""
        tasks: dict[str, Any] = {run.dataset: {"data": run.metadata["data"]} for run in self.runs}
        for (_, dataset, condition), rate in self.earlier_rates.items():
            tasks[dataset].setdefault("--rates", {})[condition] = rate
        return {
            "experiment": self.experiment.name, "elmokit_version": __version__,
            "biLM": self.model.hash, "word vectors": self.vectors_hash,
            "--set": sorted(self.options.overrides), "--tune": self.options.tune, "tasks": tasks,
        }  # fmt: skip

    def _settle(self, run: PlannedRun) -> None:
        """Execute a run that has neither a result nor diverged, within the time limit."""
        if self.store.is_settled(run):
            self.store.remove_checkpoints(run)  # if a kill came after storing the result
            return
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self.stopped[run.id] = NO_TIME
            return
        self._tell(run, None)
        try:
            result = self.executor.execute(run)
        except OutOfTime:
            self.stopped[run.id] = f"{NO_TIME}: it was started and stopped"
        except FloatingPointError as error:
            log.warning("%s: %s", run.describe(), error)
            self.store.write_divergence(run, str(error))
        else:
            self.store.write(run, result)
            self._write()
            self._tell(run, result)

    def _score_test(self, run: PlannedRun) -> None:
        """Score a finished run on the test file of its data set, unless that has been done."""
        if isinstance(self.executor, TaskRuns) and self.test_files and self.store.read(run):
            self.listeners.on_status("scoring the test file")
            self.executor.score_test(run)

    def _tell(self, run: PlannedRun, result: RunResult | None) -> None:
        runs = self._all_runs()
        self.listeners.on_advance(Advance(self._num_done(runs), len(runs), run, result))

    def _on_work(self, text: str) -> None:
        """Show what the current run does, and stop it at the time limit."""
        self.listeners.on_status(text)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise OutOfTime

    def _write(self) -> Report:
        reasons = self.waiting | self.stopped
        for run in self.runs:
            if (reason := self.store.divergence(run)) is not None:
                reasons[run.id] = reason
        runs = [
            (run, None if run.id in self.waiting else self.store.read(run)) for run in self.runs
        ]
        findings = Findings(
            runs, self.experiment.reference, reasons, self._known[0],
            is_tuned=self.options.is_tuned,
        )  # fmt: skip
        origin = Origin(
            command=self.options.command, model=self.model, vectors=self.vectors,
            vectors_hash=self.vectors_hash, rates=self.options.rates, test_files=self.test_files,
        )  # fmt: skip
        on_test = self._on_test(findings) if self.test_files else None
        return write_report(self.experiment, findings, on_test, origin, self.options.output)

    def _on_test(self, findings: Findings) -> Findings:
        """Return the runs with their scores on the test files."""
        runs = []
        for run, result in findings.runs:
            score = self.store.read_test(run, self.test_files[run.dataset].sha256)
            if result is not None:
                result = None if score is None else replace(result, **vars(score))
            runs.append((run, result))
        return replace(findings, runs=runs, known=self._known[1], scored="the test files")
