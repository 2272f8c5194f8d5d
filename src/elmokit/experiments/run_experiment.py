"""A whole experiment in one call: check, plan, run, score, and write a report after every run."""

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from elmokit.errors import InputError, counted
from elmokit.experiments import inputs, plan
from elmokit.experiments.comparison import Difference, Findings
from elmokit.experiments.definitions import (
    Experiment,
    ExperimentOptions,
    ProbeSettings,
    find_experiment,
)
from elmokit.experiments.plan import Rates
from elmokit.experiments.report import Report, write_report
from elmokit.experiments.runs import (
    RESULTS_FILE,
    Outcome,
    PlannedRun,
    RunResult,
    measure,
    read_outcome,
    train_and_score,
    write_divergence,
    write_result,
)
from elmokit.files.sources import file_sha256
from elmokit.inference.device import pick_device
from elmokit.jobs.identity import Identity
from elmokit.jobs.job import CHECKPOINTS, Pieces, open_job
from elmokit.training.curves import check_matplotlib
from elmokit.version import __version__
from elmokit.weights.locate import PACKAGED_MODELS

log = logging.getLogger(__name__)

RATE_SETTING = "train.learning_rate="
SHOWN_HASH = 12


@dataclass(frozen=True)
class Progress:
    """How many runs have ended, and what happens now."""

    done: int
    total: int
    text: str
    is_message: bool = False
    """Whether it is worth a line of its own: the plan, a result."""


OnProgress = Callable[[Progress], None]


def run_experiment(
    name: str, options: ExperimentOptions, on_progress: OnProgress = lambda progress: None
) -> Report:
    """Run or continue an experiment: finished runs stay, and a report is written after every run.

    Inputs are checked, and compared with those of an experiment in the output, before any run.
    """
    session, output = _Session(find_experiment(name), options, on_progress), options.output
    identity, pieces = session.identity(), Pieces(output, prefix=RESULTS_FILE)
    with open_job(output, "experiment", identity, resume=options.resume, pieces=pieces) as job:
        job.begin(**identity.inputs)  # also data sets of tasks that are new
        return session.run()


class _Session:
    """One call of `run_experiment`: finds all inputs, then plans, runs and reports."""

    def __init__(
        self, experiment: Experiment, options: ExperimentOptions, on_progress: OnProgress
    ) -> None:
        pick_device(options.device)  # raises
        if experiment.plot is not None:
            check_matplotlib()
        self.model, metadata = inputs.find_bilm(experiment, options.model)
        if options.vectors is None:
            raise InputError(
                f"{experiment.name} needs static word vectors. Give a file with --vectors, ideally "
                "trained on the text of the biLM with `elmokit vectors`."
            )
        self.experiment, self.on_progress = experiment, on_progress
        self.options = replace(options, model=str(self.model))
        self.facts: dict[str, Any] = {
            "elmokit_version": __version__, **metadata, "vectors": file_sha256(options.vectors),
        }  # fmt: skip
        # by the id of a run: how it ended, or why it cannot start yet
        self.outcomes: dict[str, Outcome] = {}
        self.reasons: dict[str, str] = {}
        self.tasks = {task.dataset: task for task in experiment.select_tasks(options.tasks)}
        self.rates: Rates = {}
        self.tuning: list[PlannedRun] = []
        self.runs: list[PlannedRun] = []
        self.current = ""
        self.files_of = cache(self._write_files)  # once for all runs of a data set
        self.known: dict[object, Difference] = {}
        if experiment.probe is None:
            self._prepare_tasks()
        else:
            self._prepare_probe(experiment.probe)

    def _prepare_probe(self, probe: ProbeSettings) -> None:
        options = self.options
        if any((options.tune, options.rates, options.overrides)):
            name = self.experiment.name
            raise InputError(f"{name} trains no task: remove --tune, --rates and --set.")
        self.probe_data = inputs.read_probe_data(probe, options.data_dir)
        facts = self.facts | {"data": inputs.probe_facts(probe, options.data_dir)}
        self.runs = plan.plan_probe(probe, seeds=options.seeds, metadata=facts)

    def _prepare_tasks(self) -> None:
        options, tasks = self.options, list(self.tasks.values())
        settings = [text.replace(" ", "") for text in options.overrides]
        sets_rate = any(text.startswith(RATE_SETTING) for text in settings)
        if options.rates is not None and (options.tune or sets_rate):
            raise InputError(f"--rates excludes --tune and --set {RATE_SETTING}: remove one.")
        self.files = inputs.find_data(options.data_dir, tasks)
        metadata = {
            name: self.facts | {"data": inputs.task_facts(task, self.files[name])}
            for name, task in self.tasks.items()
        }
        if options.rates is not None:
            self.rates = plan.read_rates(options.rates, self.experiment, tasks)
        self._how: dict[str, Any] = {"metadata": metadata, "overrides": options.overrides}
        if options.tune:
            self.tuning = plan.plan_tuning(self.experiment, tasks, **self._how)
        self._plan_tasks()

    def _plan_tasks(self) -> None:
        """Plan the runs; with tuning, those of conditions without a learning rate must wait."""
        rates, waiting = self.rates, {}
        if self.tuning:
            rates, waiting = plan.best_rates(self.tuning, self.outcomes)
        self.runs = plan.plan_tasks(
            self.experiment, list(self.tasks.values()), **self._how, seeds=self.options.seeds,
            rates=rates,
        )  # fmt: skip
        tuned = {condition.name: condition.tuned_name for condition in self.experiment.conditions}
        keys = {run.id: (run.dataset, tuned[run.condition]) for run in self.runs}
        self.reasons = {name: waiting[key] for name, key in keys.items() if key in waiting}

    def identity(self) -> Identity:
        """Return what must be the same when the experiment is resumed.

        Tasks and seeds may be added or left out: each data set is an input of its own.
        """
        read: dict[str, Any] = {
            "elmokit_version": __version__,
            "biLM": self.facts["model"], "word vectors": self.facts["vectors"],
        }  # fmt: skip
        for run in self.runs:
            read[run.dataset] = {"data": run.metadata["data"]}
        for (dataset, condition), rate in self.rates.items():
            read[dataset].setdefault("--rates", {})[condition] = rate
        settings = {
            "experiment": self.experiment.name, "--set": sorted(self.options.overrides),
            "--tune": self.options.tune,
        }  # fmt: skip
        return Identity(settings, read)

    def run(self) -> Report:
        runs, output = self._all_runs(), self.options.output
        ended = {run.id: read_outcome(run.directory(output)) for run in runs}
        self.outcomes = {name: outcome for name, outcome in ended.items() if outcome is not None}
        if self.tuning:
            self._plan_tasks()
        self._write()  # a kill during the first run leaves something to resume
        self._tell(
            f"{self.experiment.title}\n{counted(len(runs), 'run')} planned, {len(self.outcomes)} "
            f"of them already done; results go to {output}",
            is_message=True,
        )
        for run in self.tuning:
            self._settle(run)
        if self.tuning:
            self._plan_tasks()
        for run in self.runs:
            if run.id not in self.reasons:
                self._settle(run)
        return self._write()

    def _all_runs(self) -> list[PlannedRun]:
        return list({run.id: run for run in (*self.tuning, *self.runs)}.values())

    def _settle(self, run: PlannedRun) -> None:
        """Execute a run that has neither a result nor diverged."""
        run_dir = run.directory(self.options.output)
        if run.id not in self.outcomes:
            self.current = run.describe()
            self._tell(f"{self.current}: starting")
            try:
                result = self._execute(run)
            except FloatingPointError as error:
                log.warning("%s: %s", self.current, error)
                write_divergence(run_dir, str(error))
                self.outcomes[run.id] = f"diverged: {error}"
                self._write()
                return
            write_result(run, self.options.output, result)
            self.outcomes[run.id] = result
            self._write()
            score = f"{result.metric} {result.value:.2f}" if result.metric else "done"
            text = f"{self.current}: {score} in {result.wall_seconds:,.0f} s"
            self._tell(f"{len(self.outcomes)} of {len(self._all_runs())} runs: {text}", True)
        # also if a kill came after storing the result
        shutil.rmtree(run_dir / CHECKPOINTS, ignore_errors=True)

    def _execute(self, run: PlannedRun) -> RunResult:
        probe = self.experiment.probe
        if probe is None:
            files = self.files_of(run.dataset)
            return train_and_score(run, files, self.options, self._on_work)
        return measure(run, probe, self.probe_data, self.options, self._on_work)

    def _write_files(self, dataset: str) -> inputs.RunFiles:
        samples_dir = self.options.output / "samples" / dataset
        return inputs.write_run_files(self.files[dataset], samples_dir, self.tasks[dataset])

    def _tell(self, text: str, is_message: bool = False) -> None:
        total = len(self._all_runs())
        self.on_progress(Progress(len(self.outcomes), total, text, is_message))

    def _on_work(self, text: str) -> None:
        self._tell(f"{self.current}: {text}")

    def _write(self) -> Report:
        options, model = self.options, self.model
        # a run that waits for a learning rate may have been tried with the one of the settings
        ended = [(run, self.reasons.get(run.id) or self.outcomes.get(run.id)) for run in self.runs]
        findings = Findings(
            ended, self.experiment.reference, self.known,
            is_tuned=options.tune or options.rates is not None, probe=self.experiment.probe,
        )  # fmt: skip
        shown = model.name if model.parent == PACKAGED_MODELS else options.model
        origin = {
            "command": f"`{options.command}`",
            "biLM": f"{shown}, hash {self.facts['model'][:SHOWN_HASH]}",
            "word vectors": f"{options.vectors}, hash {self.facts['vectors'][:SHOWN_HASH]}",
        }
        if options.rates is not None:
            origin["learning rates"] = f"tuned by an earlier command, from {options.rates}"
        return write_report(self.experiment, findings, origin, options.output)
