"""`TaskRun`: a trained task, loaded from its directory."""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import count, islice
from os import PathLike
from pathlib import Path
from typing import Any

from elmokit.config import from_dict
from elmokit.errors import InputError
from elmokit.files.sources import damage
from elmokit.inference.device import Precision, check_precision, find_device, import_torch
from elmokit.tasks.frozen_classifier import FrozenClassifier
from elmokit.tasks.frozen_tagger import FrozenTagger, can_run_frozen
from elmokit.tasks.inputs.task_bilm import BiLMReference, TaskBiLM, reopen_bilm
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.examples import Examples, check_labels, predict, score_model
from elmokit.tasks.runs.run_dir import (
    ADVICE,
    CONFIG_FILE,
    KEEPS_VECTORS,
    WEIGHTS_FILE,
    TaskRunConfig,
    input_settings_of,
    read_metadata,
    read_static,
    read_weights,
)
from elmokit.tasks.tag_search import agreeing
from elmokit.tasks.task import Answer, Task, TaskScore
from elmokit.text.given_sentences import check_is_list, check_text
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer, tokenizer_for_model
from elmokit.vectors.vector_files import LaterWords, VectorsReference
from elmokit.weights.card import result_metadata
from elmokit.weights.locate import TASK_RUNS

log = logging.getLogger(__name__)

LINES_TOGETHER, MAX_LINES_TOGETHER = 256, 1 << 16
"""Lines of raw text that are read together, at first and at most: more while words are looked up
in a file of static vectors, which is read as a whole each time."""


_vectors_lock = threading.Lock()  # held while static vectors are added: threads share a run


class TaskRun:
    """A trained task model with its inputs. Use `TaskRun.load`.

    On the CPU runs of ``pos``, ``ner`` and ``sentiment`` need no PyTorch (`FrozenTagger`).
    """

    def __init__(
        self,
        task: Task[Any],
        network: Any,
        labels: list[str],
        bilm: TaskBiLM,
        vectors: VectorsReference | None,
        metadata: dict[str, Any],
    ) -> None:
        self.task, self._network, self.labels, self._bilm = task, network, labels, bilm
        self.metadata: dict[str, Any] = metadata
        """The contents of ``task.json``."""
        keeps_all = metadata.get(KEEPS_VECTORS, False)
        self._later_words = None if vectors is None or keeps_all else LaterWords(vectors)

    @classmethod
    def load(
        cls,
        run_dir: str | PathLike[str],
        *,
        model: str | None = None,
        vectors: str | PathLike[str] | None = None,
        precision: Precision | str | None = None,
        device: str = "auto",
        cache_dir: str | PathLike[str] | None = None,
    ) -> "TaskRun":
        """Load a run that `train_task` wrote, or a packaged one.

        Args:
            run_dir: Its path, or the name of a packaged run, such as ``ner-ko``.
            model: The biLM's directory if it has moved; for a condition that needs no biLM, any
                with the same tokenizer and character settings.
            vectors: The file of its static vectors if it has moved.
            precision: Of the biLM: ``"fp32"``, ``"bf16"`` or ``"int8"``; default: as in training.
            device: Of the task model and the biLM.
            cache_dir: Where layers are kept.

        Raises:
            FileNotFoundError: if there is no such run, or its biLM is missing.
            FormatError: if it is damaged, has no weights, or the biLM is another one.
            ConfigError: if ``task.json`` has an unknown setting or a wrong value.
            MissingExtraError: if its network needs PyTorch, which is not there.
        """
        if precision is not None:
            check_precision(precision)
        run_dir = TASK_RUNS.find(run_dir)
        metadata = read_metadata(run_dir)
        reference = metadata["vectors"] and from_dict(VectorsReference, metadata["vectors"])
        config = from_dict(TaskRunConfig, metadata["config"], source=str(run_dir / CONFIG_FILE))
        task = find_task(config.task).in_units(config.units)
        config = replace(config, inputs=input_settings_of(metadata, run_dir))
        if vectors is not None and metadata.get(KEEPS_VECTORS):
            log.warning("%s has no effect: %s keeps its own vectors", vectors, run_dir)
        elif vectors is not None and reference is not None:
            reference = replace(reference, path=str(Path(vectors).absolute()))
        config = config.resolved(with_static=reference is not None)
        device = find_device(device)
        bilm = reopen_bilm(
            metadata["bilm"] and from_dict(BiLMReference, metadata["bilm"]), model, run_dir,
            config.inputs, precision=precision, device=device,
            cache_dir=None if cache_dir is None else Path(cache_dir),
        )  # fmt: skip
        labels, hidden_dims = metadata["labels"], config.hidden_dims
        arrays = read_weights(run_dir, sha256=metadata.get("weights_sha256"))
        static = read_static(run_dir, arrays)
        is_frozen = can_run_frozen(task, config, device)
        if not is_frozen:
            import_torch()
        with damage(run_dir / WEIGHTS_FILE, ADVICE, what=f"does not fit {CONFIG_FILE}"):
            # Refused before a network takes the memory for them: every recurrent layer of width H
            # has more than 3 H² weights, and every label its own.
            needed = len(labels) + 3 * sum(dim * dim for dim in hidden_dims)
            num_weights = sum(array.size for array in arrays.values())
            if needed > num_weights or len(set(labels)) < len(labels):
                raise ValueError(f"{len(labels):,} `labels` and `hidden_dims`={list(hidden_dims)}")
            if is_frozen:
                is_classifier = task.network.startswith("classifier")
                frozen = FrozenClassifier if is_classifier else FrozenTagger
                network = frozen(config, labels, bilm, static, arrays)
            else:
                modules = import_module("elmokit.tasks.networks.encoder")
                network = modules.build_network(task, config, labels, bilm, static)
                network.load_arrays(arrays)
                network = network.eval().to(device)
        return cls(task, network, labels, bilm, reference, metadata)

    def result_metadata(self) -> dict[str, Any]:
        """Return the metadata of scores of this run, without its own hash; JSON-able."""
        reference, vectors = self._bilm.reference, self.metadata["vectors"]
        form = self._bilm.char_vocab.config.normalization
        model_hash = None if reference is None else reference.model_hash
        return {
            **result_metadata(model_hash, self._bilm.tokenizer, form),
            "precision": None if reference is None else reference.precision,
            "state": self._bilm.state if self._network.settings.has_layers else None,
            "vectors_sha256": None if vectors is None else vectors["sha256"],
        }

    @property
    def reads_vectors(self) -> bool:
        """Whether the run reads static vectors."""
        return self._network.static is not None

    def keep_vectors(self) -> None:
        """Read every static vector of the run's file, so that new words need the file no longer.

        Of a fastText model only the listed words are kept, with a warning: it would make vectors of
        others, too.

        Raises:
            FileNotFoundError: if the file is gone.
            FormatError: if it is damaged, or not the file that the run was trained with.
        """
        with _vectors_lock:
            if self._later_words is not None:
                every = self._later_words.read_all()
                self._network.set_static(self._network.static.extended(every))
                self._later_words = None

    def evaluate(self, path: str | PathLike[str]) -> TaskScore:
        """Score the predictions for a file with gold answers.

        Args:
            path: In the task's format.

        Raises:
            FileNotFoundError: if there is no such file.
            FormatError: if it is damaged.
            InputError: if it has none of the labels that the model gives.
        """
        path = Path(path)
        examples = self.task.read(path, training=False, tokenize=self._bilm.tokenizer.tokenize)
        check_labels(path, self.task, self.labels, examples)
        self._look_up(examples)
        held = Examples(self.task, examples, self._bilm.layers_of(kept=True))
        return score_model(self._network, held)

    def predict_json(
        self,
        texts: Iterable[str | Sequence[Any]],
        *,
        tokenizer: str | None = None,
        names: Iterable[str] | None = None,
        by_document: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Yield what `Task.as_json` returns for each text, with probabilities; see `predict`."""
        answers = self._predict(texts, tokenizer, names, by_document)
        return (self.task.as_json(example, answer, probs()) for example, (answer, probs) in answers)

    def predict(
        self,
        texts: Iterable[str | Sequence[Any]],
        *,
        tokenizer: str | None = None,
        names: Iterable[str] | None = None,
        by_document: bool = False,
    ) -> Iterator[tuple[Any, Any]]:
        """Yield example and prediction for each text.

        Except for new static vectors, memory does not depend on the number of texts.

        Args:
            texts: A string is split by the biLM's tokenizer, a list is taken as words. An example
                of several texts is a string with tabs or a list of texts, a document also a list of
                sentences.
            tokenizer: Splits strings instead of the biLM's own, with a warning if it differs.
            names: Of the texts, for error messages; none: ``Text 1`` and so on.
            by_document: Give a name one type throughout a document, and find it wherever it is
                (task ``ner``). An empty text ends a document, which is held in memory.

        Raises:
            TypeError: at once if ``texts`` is one string; for a text that is neither string nor
                list of strings.
            InputError: for a text that the task cannot read (two texts, a marked predicate), with
                its name; for ``by_document`` with a task other than ``ner``.
        """
        answers = self._predict(texts, tokenizer, names, by_document)
        return ((example, answer) for example, (answer, _) in answers)

    def _predict(
        self,
        texts: Iterable[str | Sequence[Any]],
        tokenizer: str | None,
        names: Iterable[str] | None,
        by_document: bool,
    ) -> Iterator[tuple[Any, Answer]]:
        check_is_list(texts, name="texts")
        if by_document and self.task.name != "ner":
            raise InputError(f"by_document is for models of the task ner, not {self.task.name}.")
        own = self._bilm.tokenizer
        if tokenizer is not None:
            trained_with = TokenizerConfig(name=own.name, version=own.version)
            other = build_tokenizer(tokenizer_for_model(trained_with, tokenizer))
            own = NormalizingTokenizer(other, self._bilm.char_vocab.config.normalization)
        known_names = map("Text {}".format, count(1)) if names is None else names
        named = zip(known_names, texts, strict=names is not None)
        answers = self._predictions(named, own)
        return agreeing(answers) if by_document else answers

    def _predictions(
        self, named: Iterator[tuple[str, Any]], tokenizer: Tokenizer
    ) -> Iterator[tuple[Any, Answer]]:
        together = 1 if self.task.batched_by == "document" else LINES_TOGETHER
        num_lines, error = LINES_TOGETHER, None
        while error is None:
            examples: list[Any] = []
            try:
                for name, text in islice(named, num_lines):
                    examples.append(self._example(name, text, tokenizer))
            except Exception as bad:  # of a text, or of their source: raised after the answers
                error = bad
            if not examples:
                break
            if self._look_up(examples) and self.task.batched_by != "document":
                num_lines = min(2 * num_lines, MAX_LINES_TOGETHER)
            for start in range(0, len(examples), together):
                part = examples[start : start + together]
                held = Examples(self.task, part, self._bilm.layers_of(kept=False))
                yield from zip(part, predict(self._network, held), strict=True)
        if error is not None:
            raise error

    def _example(self, name: str, text: str | Sequence[Any], tokenizer: Tokenizer) -> Any:
        try:
            if isinstance(text, str):
                check_text(text, where="it")
                return self.task.from_text(text, tokenizer)
            return self.task.from_words(text, tokenizer.tokenize)
        except (InputError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else InputError
            raise kind(f"{name}: {error}") from error

    def _look_up(self, examples: Sequence[Any]) -> bool:
        """Add the static vectors of words that the run does not have in just this spelling."""
        with _vectors_lock:
            static = self._network.static
            if static is None or self._later_words is None:
                return False
            words = dict.fromkeys(self.task.words(examples))
            later = self._later_words.find([word for word in words if word not in static])
            if later is not None and later.words:
                self._network.set_static(static.extended(later))  # ids of earlier words stay
            return later is not None
