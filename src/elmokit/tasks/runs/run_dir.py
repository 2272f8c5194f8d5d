"""The settings of a task run, and its directory, written and read.

``task.json``: resolved configuration, labels, biLM. ``model.safetensors``: weights of the best
epoch. ``metrics.jsonl``: one row per epoch. ``vectors.txt``: words of the static vectors that are
kept, whose values are among the weights. ``run.json`` and ``checkpoints/`` are for resuming, which
a run that `save_run` wrote cannot be.
"""

import json
import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors.numpy import save_file

from elmokit.config import from_dict, parse_record
from elmokit.errors import SEEDS, FormatError, check_choices, check_ranges
from elmokit.files.atomic import atomic_directory, atomic_file
from elmokit.files.json_files import json_bytes, read_json
from elmokit.files.lines import MAX_WORD_LIST_BYTES, read_bounded
from elmokit.files.sources import damage, file_sha256
from elmokit.jobs.identity import FIXED
from elmokit.tasks.formats.reading import Columns
from elmokit.tasks.inputs.settings import UNRECORDED, InputSettings
from elmokit.tasks.inputs.task_bilm import BiLMReference
from elmokit.tasks.registry import find_task
from elmokit.tasks.task import Units
from elmokit.text.tokenizers.protocol import Tokenizer
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.vectors.vector_files import VectorsReference
from elmokit.weights.arrays import FLOATS, Storage, pack, read_all, unpack_all
from elmokit.weights.card import UNKNOWN, cell, newer_version_hint, plain
from elmokit.weights.locate import RUN_CONFIG_NAME
from elmokit.weights.model_files import CARD_NAME, check_replaceable

CONFIG_FILE = RUN_CONFIG_NAME
WEIGHTS_FILE, WORDS_FILE = "model.safetensors", "vectors.txt"
SAVED_FILES = (CONFIG_FILE, WEIGHTS_FILE, WORDS_FILE, CARD_NAME)
"""All files of a run that was saved apart from its training."""
STATIC_WEIGHT = "inputs.static.weight"
KEEPS_VECTORS = "keeps_vectors"
"""Key of `task.json`: whether the run holds all static vectors of their file."""
HELD_OUT = "held-out"
"""The dev file in ``data``, for runs whose epoch was chosen on a part of the training set."""
NOT_LISTED = (
    "name", "language", "license", "example", "label_meanings", "score", "scores", "scored"
)  # fmt: skip
"""Entries that the list under "Training" leaves out."""
ADVICE = "Copy the whole directory again, or train the task again."  # for damaged files


def write_best(
    directory: Path,
    metadata: dict[str, Any],
    arrays: Mapping[str, np.ndarray],
    static: StaticVectors | None,
    card: str,
) -> None:
    """Write the model of the best epoch so far, its metadata and its card."""
    stored = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    if static is not None:
        stored[STATIC_WEIGHT] = stored[STATIC_WEIGHT][: len(static.values)]
    # All files are written before the first one replaces that of an earlier epoch, so that a full
    # disk leaves the earlier model. The last one replaces its file first.
    with ExitStack() as files:
        for name, content in _small_files(json_bytes(metadata), static, card).items():
            files.enter_context(atomic_file(directory / name)).write_bytes(content)
        save_file(stored, files.enter_context(atomic_file(directory / WEIGHTS_FILE)))


def save_run(
    directory: Path,
    metadata: dict[str, Any],
    arrays: Mapping[str, np.ndarray],
    static: StaticVectors | None,
    card: str,
    dtype: Storage,
) -> None:
    """Write a run whole or not at all, without what resumes it; see `TaskRun.save`."""
    packed = pack({name: np.asarray(array, order="C") for name, array in arrays.items()}, dtype)
    check_replaceable(directory, noun="task run", names=SAVED_FILES, mark=CONFIG_FILE)
    with atomic_directory(directory) as fresh:
        save_file(packed, fresh / WEIGHTS_FILE)
        made = {"weights": dtype, "weights_sha256": file_sha256(fresh / WEIGHTS_FILE)}
        config = json_bytes(metadata | made, indent=2)
        for name, content in _small_files(config, static, card).items():
            (fresh / name).write_bytes(content)


def _small_files(config: bytes, static: StaticVectors | None, card: str) -> dict[str, bytes]:
    files = {CARD_NAME: card.encode("utf-8", "backslashreplace"), CONFIG_FILE: config}
    if static is not None:
        files[WORDS_FILE] = "".join(f"{word}\n" for word in static.words).encode()
    return files


@dataclass(frozen=True, kw_only=True)
class _TaskRecord:
    """``task.json``."""

    elmokit_version: str = ""
    config: dict[str, Any]
    labels: tuple[str, ...]
    bilm: BiLMReference | None
    vectors: VectorsReference | None
    data: dict[str, Any] | None = None  # paths are text, but perhaps no Unicode
    dev: Any = None
    card: Any = None
    weights: Storage = "float32"
    weights_sha256: str | None = None
    keeps_vectors: bool = False


def read_metadata(run_dir: Path) -> dict[str, Any]:
    """Return the metadata that `write_best` wrote."""
    path = run_dir / CONFIG_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{run_dir} is not a task run: there is no {path}. `elmokit train TASK --data D "
            "--model M -o RUN` makes one; a run stopped in its first epoch has no model."
        )
    required = ("config", "labels", "bilm", "vectors")
    metadata = read_json(path, advice=ADVICE, required=required)
    parse_record(_TaskRecord, metadata, source=path, advice=_advice(metadata))
    return metadata


def _advice(metadata: Mapping[str, Any]) -> str:
    return newer_version_hint(metadata.get("elmokit_version", "")) or ADVICE


def input_settings_of(metadata: dict[str, Any], run_dir: Path) -> InputSettings:
    """Return what a run reads at each word; FormatError if ``metadata`` is not complete."""
    inputs, path = metadata["config"].get("inputs", {}), run_dir / CONFIG_FILE
    known = UNRECORDED | (inputs if isinstance(inputs, dict) else {})
    # A missing setting must not become its default in silence: the run would read other inputs.
    missing = [field.name for field in fields(InputSettings) if known.get(field.name) is None]
    if missing:
        raise FormatError(
            f"{path} does not say inputs.{', inputs.'.join(missing)}: it is damaged or of another "
            f"version. {_advice(metadata)}"
        )
    return from_dict(InputSettings, known, source=str(path))


def run_hash(run_dir: Path) -> str | None:
    path = run_dir / WEIGHTS_FILE
    return file_sha256(path) if path.is_file() else None


def read_weights(run_dir: Path, *, sha256: str | None = None) -> dict[str, np.ndarray]:
    """Return the weights of a run as fp32; FormatError if they have not the hash ``sha256``."""
    path = run_dir / WEIGHTS_FILE
    stored, _ = read_all(path, advice=ADVICE, dtypes=(*FLOATS, "I8"))
    if sha256 is not None and (actual := file_sha256(path)) != sha256:
        raise FormatError(
            f"{path}: damaged, or of another run: its SHA-256 is {actual[:12]}…, but {CONFIG_FILE} "
            f"says {sha256[:12]}…. {ADVICE}"
        )
    with damage(path, ADVICE):
        return unpack_all(stored)


def read_static(run_dir: Path, arrays: Mapping[str, np.ndarray]) -> StaticVectors | None:
    path, values = run_dir / WORDS_FILE, arrays.get(STATIC_WEIGHT)
    if path.exists() != (values is not None):
        raise FormatError(
            f"{path} or the vectors of its words in {WEIGHTS_FILE} are missing. {ADVICE}"
        )
    if values is None:
        return None
    with damage(path, ADVICE):
        words = read_bounded(path, MAX_WORD_LIST_BYTES).decode().split("\n")[:-1]
        return StaticVectors(words, values[2:])


def run_card(metadata: Mapping[str, Any], tokenizer: Tokenizer, num_parameters: int) -> str:
    """Return the card of a run as Markdown with the header that model hubs read.

    ``metadata`` is that of ``task.json``, whose table ``card`` has ``name``, ``language``,
    ``license``, an ``example`` text, ``label_meanings``, ``scores`` (by label: precision, recall,
    F1, gold; the first one is over all) and ``scored`` (what was scored, and how); its other
    entries are listed as they are.
    """
    entries, config, bilm = metadata.get("card", {}), metadata["config"], metadata["bilm"]
    name = str(entries.get("name") or "path/to/this/directory")
    task = find_task(config["task"])
    header = ["library_name: elmokit", f"tags: [elmo, {task.hub_tag}]"]
    header += [
        f"{key}: {json.dumps(str(entries[key]), ensure_ascii=False)}"
        for key in ("language", "license")
        if entries.get(key)
    ]
    reads = "no biLM" if bilm is None else f"`{bilm['path']}`, hash `{bilm['model_hash']}`"
    rows = {
        "Task": f"`{task.name}`, {config['units']}",
        "Language": entries.get("language") or UNKNOWN,
        "License": entries.get("license") or UNKNOWN,
        "biLM": reads,
        "Tokenizer of raw text": f"{tokenizer.name} {tokenizer.version}",
        "Network": f"{task.encoder} {config['hidden_dims']}, {num_parameters:,} parameters",
        "Weights": metadata.get("weights", "float32"),
    }
    if (dev := metadata.get("dev")) and not entries.get("scores"):
        rows["Development set"] = f"{dev['metric']} {dev['value']:.2f}"
    table = "\n".join(f"| {key} | {cell(value)} |" for key, value in rows.items())
    listed = "\n".join(
        f"- {key}: {plain(value)}" for key, value in entries.items() if key not in NOT_LISTED
    )
    example = str(entries.get("example") or "…")
    return f"""---
{chr(10).join(header)}
---

# {name}

A task model on the layers of a biLM, made with elmokit. The biLM is not in this directory.

| | |
|---|---|
{table}

## Use

```bash
echo {shlex.quote(example)} | elmokit predict {name} -
```

```python
import elmokit

run = elmokit.TaskRun.load({json.dumps(name)})
(answer,) = run.predict_json([{json.dumps(example, ensure_ascii=False)}])
```

## Training

{listed or UNKNOWN.capitalize() + "."}
{_scores(entries)}"""


def _scores(entries: Mapping[str, Any]) -> str:
    scores: Mapping[str, Mapping[str, float]] = entries.get("scores") or {}
    if not scores:
        return ""
    meanings = entries.get("label_meanings") or {}
    rows = "\n".join(
        f"| {cell(label)} | {cell(meanings.get(label, ''))} | {score['precision']:.2f} "
        f"| {score['recall']:.2f} | {score['f1']:.2f} | {score['gold']:,} |"
        for label, score in scores.items()
    )
    header = "| | | Precision | Recall | F1 | Gold |\n|---|---|---|---|---|---|"
    return f"\n## Scores\n\n{plain(entries.get('scored', ''))}\n\n{header}\n{rows}\n"


MANY, POSITIVE = 1 << 40, (1e-300, 1e300)


@dataclass(frozen=True, kw_only=True)
class TaskTrainConfig:
    """How a task model is trained."""

    epochs: int = 20
    """Most passes over the training set."""
    batch_size: int | None = field(default=None, metadata=FIXED)
    """Examples per update; none: the task's default."""
    learning_rate: float = 1e-3
    """Peak rate of Adam."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Of the rate; ``cosine`` rises over the first twentieth of all epochs and falls to a twentieth
    of the peak at their end."""
    clip_norm: float = 5.0
    """Bound on the global norm of the gradient."""
    patience: int = 4
    """Whole epochs without a better dev score before training ends."""
    seed: int = field(default=0, metadata=FIXED)
    """Of weights, order and dropout."""
    label_share: float = field(default=1.0, metadata=FIXED)
    """Share of the training examples that is used, drawn with the seed."""
    lowercase_share: float = field(default=0.0, metadata=FIXED)
    """Share of the training sentences that are read a second time, in lower case; drawn with the
    seed. For tasks that tag words."""
    finetune_bilm: bool = field(default=False, metadata=FIXED)
    """Train the biLM, too; its layers are then computed in every update."""
    bilm_learning_rate: float = 1e-4
    """Of a biLM that is trained."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_ranges(
            self, seed=SEEDS, epochs=(1, MANY), batch_size=(1, MANY), patience=(1, MANY),
            learning_rate=POSITIVE, clip_norm=POSITIVE, bilm_learning_rate=POSITIVE,
            label_share=(1e-12, 1.0), lowercase_share=(0.0, 1.0),
        )  # fmt: skip
        if self.lowercase_share and self.label_share < 1:
            raise ValueError(
                f"`lowercase_share` needs all labels, a `label_share` of 1, got {self.label_share}"
            )


@dataclass(frozen=True, kw_only=True)
class TaskRunConfig:
    """Everything that decides a task run."""

    task: str = field(metadata=FIXED)
    """One of `elmokit.tasks.registry.TASKS`."""
    units: Units = field(default="words", metadata=FIXED)
    """What a token of the data is; ``morphemes``: for ``pos`` from a Korean treebank;
    ``characters``: for ``ner`` whose rows are the characters of the text."""
    columns: Columns | None = field(default=None, metadata=FIXED)
    """Of words and tags in the files, for ``ner``."""
    hidden_dims: tuple[int, ...] = field(default=(), metadata=FIXED)
    """Widths of the recurrent layers; none: the task's default."""
    dropout: float | None = field(default=None, metadata=FIXED)
    """Of the network; none: the task's default. Mixtures have ``inputs.dropout``; where that is 0
    by default (pos, ner, nli) the network drops them with its other inputs."""
    inputs: InputSettings = field(default_factory=InputSettings, metadata=FIXED)
    """What is read at each word."""
    train: TaskTrainConfig = field(default_factory=TaskTrainConfig)
    """How the model is trained."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_ranges(self, dropout=(0.0, 0.999))

    def resolved(self, *, with_static: bool) -> "TaskRunConfig":
        """Return the configuration completed with the task's defaults."""
        task = find_task(self.task)
        return replace(
            self,
            hidden_dims=self.hidden_dims or task.default_hidden_dims,
            dropout=task.default_dropout if self.dropout is None else self.dropout,
            inputs=task.input_settings(self.inputs, with_static=with_static),
            train=replace(self.train, batch_size=self.train.batch_size or task.default_batch_size),
        )
