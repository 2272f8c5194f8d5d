"""A whole experiment in one call: check, plan, run, score, and write a report after every run."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.experiments.comparison import Findings
from elmokit.experiments.definitions import SEEDS, Experiment, find_experiment
from elmokit.experiments.execution import ProbeRuns, Resources, TaskRuns
from elmokit.experiments.inputs import (
    HashedFile,
    find_bilm,
    find_data,
    find_probe_data,
    find_test_files,
    task_metadata,
)
from elmokit.experiments.plan import (
    LearningRates,
    PlannedRun,
    plan_probe,
    plan_tasks,
)
from elmokit.experiments.report import RESULTS_FILE, Origin, Report, write_report
from elmokit.experiments.runs import RunResult, RunStore
from elmokit.experiments.tuning import (
    ALL_DIVERGED,
    NOT_TUNED,
    best_rates,
    read_tuned_rates,
    tuning_runs,
)
from elmokit.files.hashing import file_sha256
from elmokit.files.pictures import check_matplotlib
from elmokit.inference.precision import pick_device
from elmokit.jobs.identity import Identity
from elmokit.jobs.job import MARK, Pieces, open_job
from elmokit.version import __version__
from elmokit.wording import counted

log = logging.getLogger(__name__)

COMMAND, RUNS = "experiment", "runs"
RATE_SETTING = "train.learning_rate="
NO_TIME = "no time left"


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
        for name, value in (("seeds", self.seeds), ("minutes", self.minutes)):
            if value is not None and not value > 0:  # nor NaN
                raise InputError(f"`{name}` must be above 0, got {value}.")
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
        FileNotFoundError, FormatError, InputError: before any run, if something is missing,
            damaged or does not fit.
        Stopped: after a signal during the training of a task, and its checkpoint.
    """
    session, output = _Session(find_experiment(name), options, listeners), options.output
    if output.is_dir() and [path.name for path in output.iterdir()] == [RUNS]:
        # copied from another experiment: prepared for this one
        (output / MARK).write_text(COMMAND, encoding="utf-8")
    identity = session.identity()
    with open_job(
        output, COMMAND, identity, resume=options.resume, pieces=Pieces(output, prefix=RESULTS_FILE)
    ) as job:
        job.begin(**identity.inputs)  # also data sets of tasks that are new
        return session.run()


class _Session:
    """One call of `run_experiment`: finds all inputs, then plans, runs and reports."""

    def __init__(
        self, experiment: Experiment, options: ExperimentOptions, listeners: Listeners
    ) -> None:
        self.experiment, self.options, self.listeners = experiment, options, listeners
        self.tasks = experiment.select_tasks(options.tasks)
        if experiment.plot is not None:
            check_matplotlib()
        self.model = find_bilm(experiment, options.model)
        if options.vectors is None:
            raise InputError(
                f"{experiment.name} needs static word vectors. Give a file with --vectors, ideally "
                "trained on the text of the biLM with `elmokit vectors`."
            )
        self.vectors = options.vectors
        self.vectors_hash = file_sha256(self.vectors)
        self.store = RunStore(options.output / RUNS)
        self.resources = Resources(
            store=self.store, samples_dir=options.output / "samples", model=self.model.path,
            vectors=self.vectors, device=options.device, cache_dir=options.cache_dir,
            on_work=self._on_work,
        )  # fmt: skip
        self.metadata: dict[str, dict[str, Any]] = {}
        """What determines the results of a task besides its configuration, by data set."""
        self.test_files: dict[str, HashedFile] = {}
        self.earlier_rates: LearningRates = {}
        self.tuning: list[PlannedRun] = []
        self.runs: list[PlannedRun] = []
        self.waiting: dict[str, str] = {}
        """Why a planned run, by id, cannot start: it has no learning rate."""
        self.stopped: dict[str, str] = {}
        """Why a run, by id, has not ended."""
        self._tests: tuple[dict[object, Any], dict[object, Any]] = ({}, {})
        self._executor = self._task_runs() if experiment.probe is None else self._probe_runs()
        minutes = options.minutes
        self.deadline = None if minutes is None else time.monotonic() + 60 * minutes

    def _probe_runs(self) -> ProbeRuns:
        options, probe = self.options, self.experiment.probe
        assert probe is not None
        if any((options.tune, options.rates, options.overrides, options.test_dir)):
            raise InputError(
                f"{self.experiment.name} trains no task: remove --tune, --rates, --set and --test."
            )
        find_probe_data(probe, options.data_dir)
        files = sorted((options.data_dir / probe.dataset).iterdir())
        self.runs = plan_probe(
            probe, seeds=options.seeds or SEEDS, bilm=self.model.metadata,
            data={path.name: file_sha256(path) for path in files if path.is_file()},
            vectors_hash=self.vectors_hash,
        )  # fmt: skip
        return ProbeRuns(resources=self.resources, settings=probe, data_dir=options.data_dir)

    def _task_runs(self) -> TaskRuns:
        options = self.options
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
        if options.tune:
            self.tuning = tuning_runs(self.experiment, self._plan)
        self._plan_tasks()
        return TaskRuns(
            resources=self.resources, tasks={task.dataset: task for task in self.tasks},
            files=files, test_files=self.test_files,
        )  # fmt: skip

    def _plan(
        self, experiment: Experiment, rates: LearningRates, seeds: int | None
    ) -> list[PlannedRun]:
        return plan_tasks(
            experiment, self.tasks, metadata=self.metadata, overrides=self.options.overrides,
            seeds=seeds, learning_rates=rates,
        )  # fmt: skip

    def _plan_tasks(self) -> None:
        """Plan the runs; with tuning, those of conditions without a learning rate must wait."""
        if not self.options.tune:
            self.runs = self._plan(self.experiment, self.earlier_rates, self.options.seeds)
            return
        rates, diverged = best_rates(self.tuning, self.store)
        self.runs = self._plan(self.experiment, rates, self.options.seeds)
        tuned = {condition.name: condition.tuned_name for condition in self.experiment.conditions}
        self.waiting = {}
        for run in self.runs:
            key = run.task, run.dataset, tuned[run.condition]
            if key not in rates:
                self.waiting[run.id] = ALL_DIVERGED if key in diverged else NOT_TUNED

    def run(self) -> Report:
        self._write()  # a kill during the first run leaves something to resume
        runs = self._all_runs()
        self.listeners.on_plan(
            f"{self.experiment.title}\n{counted(len(runs), 'run')} planned, {self._num_done(runs)} "
            f"of them already done; results go to {self.options.output}"
        )
        for run in self.tuning:
            self._settle(run)
        if self.tuning:
            self._plan_tasks()
        for run in self.runs:
            if run.id not in self.waiting:
                self._settle(run)
                self._score_test(run)
        return self._write()

    def _all_runs(self) -> list[PlannedRun]:
        return list({run.id: run for run in (*self.tuning, *self.runs)}.values())

    def _num_done(self, runs: list[PlannedRun]) -> int:
        return sum(map(self.store.is_settled, runs))

    def identity(self) -> Identity:
        """Return what must be the same when the experiment is resumed.

        Tasks, seeds and test files may be added or left out: each data set is an input of its own.
        """
        options = self.options
        inputs: dict[str, Any] = {
            "elmokit_version": __version__,
            "biLM": self.model.hash, "word vectors": self.vectors_hash,
        }  # fmt: skip
        for run in self.runs:
            inputs[run.dataset] = {"data": run.metadata["data"]}
        for (_, dataset, condition), rate in self.earlier_rates.items():
            inputs[dataset].setdefault("--rates", {})[condition] = rate
        settings = {
            "experiment": self.experiment.name, "--set": sorted(options.overrides),
            "--tune": options.tune,
        }  # fmt: skip
        return Identity(settings, inputs)

    def _settle(self, run: PlannedRun) -> None:
        """Execute a run that has neither a result nor diverged, within the time limit."""
        if self.store.is_settled(run):
            self.store.remove_checkpoints(run)  # if a kill came after storing the result
            return
        if self._is_out_of_time():
            self.stopped[run.id] = NO_TIME
            return
        self._tell(run, None)
        try:
            result = self._executor.execute(run)
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
        if isinstance(self._executor, TaskRuns) and self.test_files and self.store.read(run):
            self.listeners.on_status("scoring the test file")
            self._executor.score_test(run)

    def _tell(self, run: PlannedRun, result: RunResult | None) -> None:
        runs = self._all_runs()
        self.listeners.on_advance(Advance(self._num_done(runs), len(runs), run, result))

    def _on_work(self, text: str) -> None:
        """Show what the current run does, and stop it at the time limit."""
        self.listeners.on_status(text)
        if self._is_out_of_time():
            raise OutOfTime

    def _is_out_of_time(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _write(self) -> Report:
        reasons = self.waiting | self.stopped
        for run in self.runs:
            if (reason := self.store.divergence(run)) is not None:
                reasons[run.id] = reason
        runs = [
            (run, None if run.id in self.waiting else self.store.read(run)) for run in self.runs
        ]
        findings = Findings(
            runs, self.experiment.reference, reasons, self._tests[0],
            is_tuned=self.options.tune or self.options.rates is not None,
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
        return replace(findings, runs=runs, known=self._tests[1], scored="the test files")
