"""A whole experiment in one call: check, plan, run, score, and write a report after every run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elmokit.bilm.device import pick_device
from elmokit.errors import InputError
from elmokit.experiments.experiment import Experiment
from elmokit.experiments.inputs import find_bilm, find_data, task_metadata
from elmokit.experiments.plan import Condition, LearningRates, PlannedRun, plan_tasks
from elmokit.experiments.probe_plan import plan_probe
from elmokit.experiments.registry import find_experiment
from elmokit.experiments.results.earlier_report import check_earlier_report
from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.report import Report, metadata_of, options_of, write_report
from elmokit.experiments.results.tuned_rates import read_tuned_rates
from elmokit.experiments.runs.probe_runs import ProbeRuns
from elmokit.experiments.runs.run_queue import Advance, Execute, RunQueue
from elmokit.experiments.runs.scores_on_test import ScoresOnTest
from elmokit.experiments.runs.store import RunResult, RunStore
from elmokit.experiments.runs.task_runs import TaskRuns
from elmokit.experiments.runs.tuning import ChosenRates, best_rates, tuning_runs
from elmokit.experiments.scored_files import find_test_files
from elmokit.experiments.settings import SEEDS
from elmokit.files.hashing import file_sha256
from elmokit.files.location import counted
from elmokit.files.locks import directory_lock
from elmokit.files.pictures import check_matplotlib
from elmokit.probes.data import SplitFiles
from elmokit.weights.locate import PACKAGED_MODELS, packaged_models

RATE_SETTING = "train.learning_rate="
MODEL_IS_GONE = "because the trained models are gone (delete the runs to train them again)"


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """User options of an experiment."""

    data_dir: Path
    """Folder with one folder per data set."""
    output: Path
    """Folder for the report; runs are stored in ``runs`` beside it, shared by experiments."""
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
class Listeners:
    """Callbacks for the progress of an experiment."""

    on_plan: Callable[[str], None] = lambda text: None
    """Gets a description of the plan before the first run."""
    on_advance: Callable[[Advance], None] = lambda advance: None
    on_status: Callable[[str], None] = lambda text: None
    """Gets the activity of the current run."""


def run_experiment(
    name: str, options: ExperimentOptions, listeners: Listeners = Listeners()
) -> Report:
    """Run or continue an experiment from `elmokit.experiments.registry` and return the report.

    ``results.json``, ``table.md`` and, if there is anything to draw, ``plot.png`` are written after
    every run. Finished runs are not repeated, even if another call made them.

    Raises:
        FileExistsError: if another process works on the same experiment; before any run, if the
            output has foreign files, or results of other options.
        FileNotFoundError: before any run, if data, test files, biLM or vectors are missing.
        FormatError: if a file is damaged.
        InputError: for an unknown name or an invalid option; before any run, if a training set
            cannot be divided, or a test file is of another task or the training file.
        MissingExtraError: before any run, if plots need matplotlib.
    """
    session = _Session(find_experiment(name), options, listeners)
    options.output.mkdir(parents=True, exist_ok=True)
    busy = (
        f"Another process works on the experiment in {options.output}. Wait for it, or give "
        "another --output: processes with outputs in one folder divide the runs among them."
    )
    with directory_lock(options.output, busy=busy):
        return session.run()


@dataclass
class _Plan:
    """All runs, and by id why some cannot start yet."""

    runs: list[PlannedRun]
    reasons: dict[str, str] = field(default_factory=dict)


class _Session:
    """One call of `run_experiment`."""

    def __init__(
        self, experiment: Experiment, options: ExperimentOptions, listeners: Listeners
    ) -> None:
        self.experiment, self.options, self.listeners = experiment, options, listeners
        self.tasks = experiment.choose_tasks(options.tasks)
        if experiment.plot is not None:
            check_matplotlib()
        self.model = find_bilm(model_of(experiment, options.model))
        self.vectors = _vectors(experiment, options)
        self.vectors_hash = file_sha256(self.vectors)
        self.files: dict[str, SplitFiles] = {}
        self.metadata: dict[str, dict[str, Any]] = {}
        self.store = RunStore(options.output.parent / "runs")
        self.on_test: ScoresOnTest | None = None
        if experiment.probe is None:
            self.files = find_data(options.data_dir, self.tasks)
            if options.test_dir is not None:
                self.on_test = self._scores_on_test(options.test_dir)
            for one in self.tasks:
                self.metadata[one.dataset] = task_metadata(
                    one, self.files[one.dataset], self.model, self.vectors_hash
                )
        elif any((options.tune, options.rates, options.overrides, options.test_dir)):
            raise InputError(
                f"{experiment.name} trains no task: remove --tune, --rates, --set and --test."
            )
        self.known_rates = ChosenRates(self._known_rates())
        self.test_files = {} if self.on_test is None else self.on_test.files
        self.queue = RunQueue(
            self.store, self._execute(), minutes=options.minutes, on_advance=self._on_advance
        )
        self.plan = _Plan([])
        self._results: dict[str, RunResult] = {}
        self._known: dict[str, dict[object, Any]] = {"dev": {}, "test": {}}

    def run(self) -> Report:
        tuning = self._tuning_runs() if self.options.tune else []
        self.plan = self._make_plan(best_rates(tuning, self.store) if tuning else self.known_rates)
        self._check_output()
        self._tell_plan(tuning)
        reasons = {}
        if tuning:
            reasons = self.queue.run_all(tuning, among=[*tuning, *self.plan.runs])
            self.plan = self._make_plan(best_rates(tuning, self.store))
        ready = [run for run in self.plan.runs if run.id not in self.plan.reasons]
        if self.on_test is not None:
            for run in ready:  # those of earlier commands
                self.on_test.add(run)
        return self._write(reasons | self.queue.run_all(ready, among=[*tuning, *ready]))

    def _known_rates(self) -> LearningRates:
        """Return the rates in the file of `--rates`; empty without it."""
        if self.options.rates is None:
            return {}
        if any(one.replace(" ", "").startswith(RATE_SETTING) for one in self.options.overrides):
            raise InputError(
                f"--rates and --set {RATE_SETTING} exclude each other: both set the learning rate."
            )
        needed = dict.fromkeys(
            (task.task, task.dataset, condition.tuned_name)
            for task in self.tasks
            for condition in self.experiment.conditions
            if not condition.tasks or task.task in condition.tasks
        )
        return read_tuned_rates(self.options.rates, needed)

    def _scores_on_test(self, test_dir: Path) -> ScoresOnTest:
        options = self.options
        return ScoresOnTest(
            files=find_test_files(test_dir, self.tasks, self.files, self.model.path),
            store=self.store, model=self.model.path, vectors=self.vectors, device=options.device,
            cache_dir=options.cache_dir, on_status=self.listeners.on_status,
        )  # fmt: skip

    def _execute(self) -> Execute:
        options, probe = self.options, self.experiment.probe
        shared: dict[str, Any] = {
            "work_dir": self.store.directory, "model": self.model.path, "vectors": self.vectors,
            "device": options.device, "cache_dir": options.cache_dir,
            "on_status": self.listeners.on_status,
        }  # fmt: skip
        if probe is not None:
            return ProbeRuns(settings=probe, data_dir=options.data_dir, **shared)
        return TaskRuns(
            files=self.files, training_dir=self.store.training_dir,
            keep_model=self.store.keep_model, **shared,
        )  # fmt: skip

    def _plan_tasks(self, conditions: Sequence[Condition], **more: Any) -> list[PlannedRun]:
        return plan_tasks(
            self.tasks, conditions, metadata=self.metadata, overrides=self.options.overrides,
            max_seeds=self.experiment.max_seeds, **more,
        )  # fmt: skip

    def _make_plan(self, chosen: ChosenRates) -> _Plan:
        """Return the plan; with tuning, only conditions without a chosen rate must wait."""
        options, experiment = self.options, self.experiment
        if experiment.probe is not None:
            return _Plan(plan_probe(
                experiment.probe, options.data_dir, seeds=options.seeds or SEEDS, model=self.model,
                vectors_hash=self.vectors_hash,
            ))  # fmt: skip
        runs = self._plan_tasks(
            experiment.conditions, shares=experiment.shares, seeds=options.seeds,
            learning_rates=chosen.rates,
        )  # fmt: skip
        if not options.tune:
            return _Plan(runs)
        tuned = {condition.name: condition.tuned_name for condition in experiment.conditions}
        reasons = {run.id: chosen.reason_against(run, tuned[run.condition]) for run in runs}
        return _Plan(runs, {run: reason for run, reason in reasons.items() if reason is not None})

    def _tuning_runs(self) -> list[PlannedRun]:
        tuned = [one for one in self.experiment.conditions if one.tuned_name == one.name]

        def plan(rates: LearningRates) -> list[PlannedRun]:
            return self._plan_tasks(tuned, shares=(1.0,), seeds=1, learning_rates=rates)

        return tuning_runs(plan)

    def _tell_plan(self, tuning: list[PlannedRun]) -> None:
        runs = {run.id: run for run in (*tuning, *self.plan.runs)}
        done = sum(self.store.is_settled(run) for run in runs.values())
        self.listeners.on_plan(
            f"{self.experiment.title}\n{counted(len(runs), 'run')} planned, {done} of them already "
            f"done; results go to {self.options.output}, runs to {self.store.directory}"
        )

    def _on_advance(self, advance: Advance) -> None:
        if advance.result is not None:
            is_tuning_run = advance.run.id in self.plan.reasons or advance.run not in self.plan.runs
            if self.on_test is not None and not is_tuning_run:
                self.on_test.add(advance.run)
            self._write({})
        self.listeners.on_advance(advance)

    def _check_output(self) -> None:
        """Refuse an output with foreign files or with results of other options."""
        findings = self._findings({})
        options = options_of(
            self.experiment, findings, self._metadata(findings), self.test_files
        )  # fmt: skip
        check_earlier_report(self.options.output, options, self.plan.runs)

    def _findings(self, reasons: Mapping[str, str]) -> Findings:
        runs = [(run, self._result(run)) for run in self.plan.runs]
        diverged = {run.id: self.store.divergence(run) for run in self.plan.runs}
        diverged = {run: reason for run, reason in diverged.items() if reason is not None}
        reasons = self.plan.reasons | dict(reasons) | diverged
        return Findings(
            runs, self.experiment.reference, reasons, self._known["dev"],
            is_tuned=self.options.is_tuned,
        )  # fmt: skip

    def _write(self, reasons: Mapping[str, str]) -> Report:
        findings = self._findings(reasons)
        on_test = None
        if self.on_test is not None:
            on_test = self._with_scores(findings, self.on_test)
        return write_report(
            self.experiment, findings, self._metadata(findings), self.options.output,
            on_test=on_test, test_files=self.test_files,
        )  # fmt: skip

    def _metadata(self, findings: Findings) -> dict[str, str]:
        return metadata_of(
            self.experiment, findings, command=self.options.command, model=self.model,
            vectors=self.vectors, rates=self.options.rates, test_files=self.test_files,
        )  # fmt: skip

    def _with_scores(self, findings: Findings, on_test: ScoresOnTest) -> Findings:
        """Return the runs with their scores on the test files."""
        scores = [(run, result, on_test.read(run)) for run, result in findings.runs]
        runs = [
            (run, None if result is None or score is None else result.on_file(score))
            for run, result, score in scores
        ]
        reasons = {run.id: MODEL_IS_GONE for run, _ in findings.finished if on_test.is_lost(run)}
        return replace(
            findings, runs=runs, reasons=reasons, known=self._known["test"], scored="the test files"
        )

    def _result(self, run: PlannedRun) -> RunResult | None:
        if run.id in self.plan.reasons:
            return None
        if run.id not in self._results and (result := self.store.read(run)) is not None:
            self._results[run.id] = result
        return self._results.get(run.id)


def model_of(experiment: Experiment, model: str | None) -> str | None:
    """Return directory or name of the biLM that an experiment reads; none: the English one.

    Raises:
        InputError: if the package has no model of the experiment's language and none is given.
    """
    if model is None and experiment.language != "en":
        if experiment.language not in packaged_models():
            raise InputError(
                f"{experiment.name} needs a biLM of the language {experiment.language!r}, and the "
                "package has none. Give one with --model, and vectors of its text with --vectors."
            )
        return str(PACKAGED_MODELS / experiment.language)
    return model


def _vectors(experiment: Experiment, options: ExperimentOptions) -> Path:
    if options.vectors is None:
        raise InputError(
            f"{experiment.name} needs static word vectors. Give a file with --vectors, ideally "
            "trained on the text of the biLM with `elmokit vectors`."
        )
    if not options.vectors.is_file():
        raise FileNotFoundError(f"There is no file of word vectors {options.vectors}.")
    return options.vectors
