"""Scores of finished runs on test files, made with their kept models."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.runs.store import FileScore, RunStore
from elmokit.experiments.runs.task_runs import OnStatus
from elmokit.experiments.samples import sample_file
from elmokit.experiments.scored_files import HashedFile
from elmokit.tasks.runs.task_run import TaskRun


@dataclass(frozen=True, kw_only=True)
class ScoresOnTest:
    """Scores runs on the test file of their data set, each once, and keeps the scores."""

    files: Mapping[str, HashedFile]
    """By data set."""
    store: RunStore
    model: Path
    """biLM directory."""
    vectors: Path
    """Static word vectors that the runs were trained with."""
    device: str = "auto"
    cache_dir: Path | None = None
    """Cache for layers."""
    on_status: OnStatus = lambda text: None
    _known: dict[str, FileScore] = field(default_factory=dict, init=False)
    """Scores read so far, by run."""

    def add(self, run: PlannedRun) -> None:
        """Score a run that is finished, unless it has its score or has no model any more.

        Raises:
            FormatError: if the model is damaged.
        """
        if run not in self.store or self.is_lost(run) or self.read(run) is not None:
            return
        file = self.files[run.dataset]
        self.on_status("scoring the test file")
        path = sample_file(
            file.path, self.store.directory / "samples" / f"test-{file.sha256}", task=run.task,
            limit=None, subset=run.metadata["data"]["subset"],
        )  # fmt: skip
        kept = TaskRun.load(
            self.store.model_dir(run), model=str(self.model), vectors=self.vectors,
            device=self.device, cache_dir=self.cache_dir,
        )  # fmt: skip
        self.store.write_test(run, file.sha256, FileScore.of(kept.evaluate(path)))

    def read(self, run: PlannedRun) -> FileScore | None:
        """Return the score of a run, or none; `FormatError` if it is damaged."""
        if run.id not in self._known:
            score = self.store.read_test(run, self.files[run.dataset].sha256)
            if score is None:
                return None
            self._known[run.id] = score
        return self._known[run.id]

    def is_lost(self, run: PlannedRun) -> bool:
        """Return whether a finished run has neither a score nor a model to make one."""
        has_model = self.store.model_dir(run).is_dir()
        return run in self.store and not has_model and self.read(run) is None
