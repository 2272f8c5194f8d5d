"""A whole experiment in one call: check, plan, run, and after every run write what is known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.experiments.plan import LearningRates, PlannedRun, plan_tasks
from elmokit.experiments.probes import plan_probe
from elmokit.experiments.registry import (
    DEFAULT_SEEDS,
    Experiment,
    choose_tasks,
    find_experiment,
)
from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.plots import check_plots
from elmokit.experiments.results.report import Report, facts_for_people, write_report
from elmokit.experiments.runs.probe_runs import ProbeRuns
from elmokit.experiments.runs.runner import Advance, Execute, Outcome, Runner
from elmokit.experiments.runs.store import RunResult, RunStore
from elmokit.experiments.runs.task_runs import TaskRuns
from elmokit.experiments.runs.tuning import ChosenRates, best_rates, tuning_runs
from elmokit.experiments.settings import TaskSettings
from elmokit.experiments.sources import (
    DataFiles,
    deciding_facts,
    find_bilm,
    find_data,
)
from elmokit.files.hashing import file_sha256
from elmokit.weights.locate import PACKAGED_MODELS, packaged_models


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """What a user chooses."""

    data_dir: Path
    """Folder with the data sets, a folder each."""
    output: Path
    """For the tables; runs are kept in ``runs`` beside it, shared by experiments."""
    model: str | None = None
    """biLM directory; none: the one in the package, of the experiment's language."""
    vectors: Path | None = None
    """Static word vectors, best of the same text as the biLM."""
    seeds: int = DEFAULT_SEEDS
    minutes: float | None = None
    """For everything together; none: without end."""
    tasks: tuple[str, ...] = ()
    """None: all of the experiment."""
    tune: bool = False
    """Try `RATE_FACTORS` for every condition with seed 0 and take the best."""
    keep_models: bool = False
    """Keep trained task models in ``models`` beside the tables."""
    overrides: tuple[str, ...] = ()
    """Dotted settings of `TaskRunConfig`, over those of the experiment, for every condition."""
    cache_dir: Path | None = None
    """Where layers are kept; none: the user's cache."""
    device: str = "auto"
    """Where task models compute: ``auto`` is CUDA where there is one."""
    command: str = ""
    """What was typed, for the report."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        if self.seeds < 1:
            raise InputError(f"`seeds` must be at least 1, got {self.seeds}.")
        if self.minutes is not None and self.minutes <= 0:
            raise InputError(f"`minutes` must be above 0, got {self.minutes}.")


@dataclass(frozen=True)
class Listeners:
    """What is told how far an experiment is."""

    on_plan: Callable[[str], None] = lambda text: None
    """The plan in words, before the first run."""
    on_advance: Callable[[Advance], None] = lambda advance: None
    on_status: Callable[[str], None] = lambda text: None
    """What the run that is going on does."""


def run_experiment(
    name: str,
    options: ExperimentOptions,
    listeners: Listeners = Listeners(),
) -> Report:
    """Run an experiment, or go on with it, and return what is known at the end.

    The report is written after every run: ``results.json``, ``table.md`` and, where there is
    something to draw, ``plot.png``. Runs that are done are not done again, whoever did them.

    Args:
        name: Of `EXPERIMENTS`.
        options: What a user chooses.
        listeners: Told how far it is.

    Raises:
        FileNotFoundError: before anything is computed, if data, biLM or vectors are missing.
        FormatError: if something is damaged.
        InputError: for a name or option that there is not.
        MissingExtraError: before anything is computed, if pictures need matplotlib.
    """
    experiment = find_experiment(name)
    work = _Work(experiment, choose_tasks(experiment, options.tasks), options, listeners)
    return work.run()


@dataclass
class _Plan:
    """Runs to be made, and those that cannot be made yet."""

    runs: list[PlannedRun]
    reasons: dict[str, str] = field(default_factory=dict)


class _Work:
    """One call of `run_experiment`.

    Args:
        experiment: Which.
        tasks: Those of its tasks that are wanted.
        options: What a user chooses.
        listeners: Told how far it is.
    """

    def __init__(
        self,
        experiment: Experiment,
        tasks: tuple[TaskSettings, ...],
        options: ExperimentOptions,
        listeners: Listeners,
    ) -> None:
        self.experiment, self.tasks, self.options = experiment, tasks, options
        self.listeners = listeners
        if experiment.plot is not None:
            check_plots()
        self.model = find_bilm(_model_name(experiment, options.model))
        self.vectors = _vectors(experiment, options)
        self.vectors_hash = file_sha256(self.vectors)
        self.files: dict[str, DataFiles] = {}
        self.facts: dict[str, dict[str, Any]] = {}
        if experiment.probe is None:
            self.files = find_data(options.data_dir, tasks)
            self.facts = {
                one.dataset: deciding_facts(
                    one, self.files[one.dataset], self.model, self.vectors_hash
                )
                for one in tasks
            }
        elif options.tune or options.overrides:
            raise InputError(f"{experiment.name} trains no task: leave --tune and --set away.")
        self.store = RunStore(options.output.parent / "runs")
        self.runner = Runner(
            self.store, self._execute(), minutes=options.minutes, on_advance=self._on_advance
        )
        self.plan = _Plan([])
        self._results: dict[str, RunResult] = {}
        self._known: dict[object, Any] = {}

    def run(self) -> Report:
        """Make the runs; return the report."""
        tuning = self._tuning_runs() if self.options.tune else []
        self.plan = self._make_plan(ChosenRates({}))
        self._tell_plan(tuning)
        outcome = Outcome()
        if tuning:
            outcome = self.runner.run_all(tuning)
            self.plan = self._make_plan(best_rates(tuning, self.store))
        ready = [run for run in self.plan.runs if run.id not in self.plan.reasons]
        reasons = outcome.reasons | self.runner.run_all(ready).reasons
        return self._write(reasons)

    def _execute(self) -> Execute:
        options, probe = self.options, self.experiment.probe
        work_dir = self.store.directory
        if probe is not None:
            return ProbeRuns(
                probe, options.data_dir, work_dir, model=self.model.path, vectors=self.vectors,
                cache_dir=options.cache_dir, on_status=self.listeners.on_status,
            )  # fmt: skip
        return TaskRuns(
            self.files, work_dir, model=self.model.path, vectors=self.vectors,
            cache_dir=options.cache_dir,
            models_dir=options.output / "models" if options.keep_models else None,
            device=options.device, on_status=self.listeners.on_status,
        )  # fmt: skip

    def _plan_tasks(
        self, rates: LearningRates, *, shares: Sequence[float], seeds: int
    ) -> list[PlannedRun]:
        return plan_tasks(
            self.tasks,
            self.experiment.conditions,
            shares=shares,
            seeds=range(seeds),
            facts=self.facts,
            overrides=self.options.overrides,
            learning_rates=rates,
        )

    def _make_plan(self, chosen: ChosenRates) -> _Plan:
        """Return the plan; with tuning, conditions without a chosen rate cannot be run yet."""
        options, probe = self.options, self.experiment.probe
        if probe is not None:
            runs = plan_probe(
                probe, options.data_dir, seeds=options.seeds, model=self.model,
                vectors_hash=self.vectors_hash,
            )  # fmt: skip
            return _Plan(runs)
        runs = self._plan_tasks(chosen.rates, shares=self.experiment.shares, seeds=options.seeds)
        if not options.tune:
            return _Plan(runs)
        reasons = {run.id: chosen.reason_against(run) for run in runs}
        return _Plan(runs, {run: reason for run, reason in reasons.items() if reason is not None})

    def _tuning_runs(self) -> list[PlannedRun]:
        return tuning_runs(lambda rates: self._plan_tasks(rates, shares=(1.0,), seeds=1))

    def _tell_plan(self, tuning: list[PlannedRun]) -> None:
        runs = {run.id: run for run in (*tuning, *self.plan.runs)}
        done = sum(self.store.is_settled(run) for run in runs.values())
        self.listeners.on_plan(
            f"{self.experiment.title}\n{len(runs)} runs planned, {done} of them done before; "
            f"results go to {self.options.output}, runs to {self.store.directory}"
        )

    def _on_advance(self, advance: Advance) -> None:
        if advance.result is not None:
            self._write({})
        self.listeners.on_advance(advance)

    def _write(self, reasons: Mapping[str, str]) -> Report:
        runs = [(run, self._result(run)) for run in self.plan.runs]
        findings = Findings(
            runs,
            self.experiment.reference,
            self.plan.reasons | dict(reasons) | self._divergences(),
            self._known,
        )
        facts = facts_for_people(
            self.experiment,
            findings,
            command=self.options.command,
            model=self.model,
            vectors=self.vectors,
        )
        return write_report(self.experiment, findings, facts, self.options.output)

    def _divergences(self) -> dict[str, str]:
        found = {run.id: self.store.divergence(run) for run in self.plan.runs}
        return {run: reason for run, reason in found.items() if reason is not None}

    def _result(self, run: PlannedRun) -> RunResult | None:
        if run.id in self.plan.reasons:
            return None
        if run.id not in self._results and (result := self.store.read(run)) is not None:
            self._results[run.id] = result
        return self._results.get(run.id)


def _model_name(experiment: Experiment, model: str | None) -> str | None:
    if model is None and experiment.language != "en":
        if experiment.language not in packaged_models():
            raise InputError(
                f"{experiment.name} needs a biLM of the language {experiment.language!r}, and the "
                "package has none: give one with --model, and vectors of its text with --vectors."
            )
        return str(PACKAGED_MODELS / experiment.language)
    return model


def _vectors(experiment: Experiment, options: ExperimentOptions) -> Path:
    if options.vectors is None:
        raise InputError(
            f"{experiment.name} needs static word vectors: give a file with --vectors, best "
            "trained on the text of the biLM (`elmokit vectors` does)."
        )
    if not options.vectors.is_file():
        raise FileNotFoundError(f"There is no file of word vectors {options.vectors}.")
    return options.vectors
