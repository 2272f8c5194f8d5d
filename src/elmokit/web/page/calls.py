"""The calls that the page makes to a server, by name: the methods of ``compute/client.js``."""

import json
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from elmokit.embed.embedder import Embedder
from elmokit.errors import ElmokitError, FormatError, InputError, MissingExtraError
from elmokit.evaluation.surprisal import surprisal_of_words
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.evaluation.word_prediction import predict_of_words
from elmokit.field_checks import is_number
from elmokit.files.json_files import jsonable
from elmokit.files.remote import AnyFile
from elmokit.inspection.tokens import tokenize
from elmokit.inspection.trace import trace
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.training.curves import read_training_run
from elmokit.web.page.catalog import MAX_BYTES, MAX_NAMED, MAX_TOP, MAX_WORDS, ExploredModel
from elmokit.web.page.corpus_index import CorpusIndex
from elmokit.weights.model_dir import PretrainedBiLM

_SOON_SECONDS = 0.2
_MAX_FACTOR = 1_000_000
"""Of a mixture: larger ones would leave the range of its numbers."""


class CallError(Exception):
    """What went wrong, by a code of ``compute/errors.js``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Calls:
    """Answers calls, one computation at a time.

    Args:
        models: Those of the catalog.
        runs: Directories of training runs, by name.
        tasks: Trained task models, by name.
        corpus: Files in which neighbors are looked for; none if there are none.
    """

    def __init__(
        self,
        models: Sequence[ExploredModel],
        *,
        runs: Mapping[str, Path] | None = None,
        tasks: Mapping[str, TaskRun] | None = None,
        corpus: Sequence[AnyFile] = (),
    ) -> None:
        self._models = {one.name: one.model for one in models}
        self._runs, self._tasks = dict(runs or {}), dict(tasks or {})
        self._embedders: dict[str, Embedder] = {}
        self._corpus, self._indexes = list(corpus), dict[str, CorpusIndex]()
        self._scorers: dict[tuple[str, str], TextScorer] = {}
        self._lock = threading.Lock()
        self._methods: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "open": lambda given: self._model(given) and {},
            "tokenize": self._tokenize,
            "trace": self._trace,
            "surprisal": self._surprisal,
            "layers": self._layers,
            "predict_word": self._predict_word,
            "neighbors": self._neighbors,
            "run": self._run,
            "predict": self._predict,
        }

    def answer(self, method: str, given: Mapping[str, Any]) -> Any:
        """Return what is to be sent: bytes, or anything that `jsonable` takes.

        Raises:
            CallError: for whatever a page can do wrong; anything else is a bug.
        """
        if method not in self._methods:
            raise CallError("not-available", f"This server has no call {method[:40]!r}.")
        _check_size(given)
        try:
            with self._lock:
                return self._methods[method](given)
        except MissingExtraError as error:
            raise CallError("missing-extra", str(error)) from error
        except ElmokitError as error:
            raise CallError("bad-input", str(error)) from error

    def load_tokenizers(self) -> None:
        """Load what takes seconds (Kiwi), so that the first reader does not wait for it."""
        for model in self._models.values():
            with self._lock, suppress(MissingExtraError):  # the catalog has told of those
                model.tokenize("a")

    def _model(self, given: Mapping[str, Any]) -> PretrainedBiLM:
        return _named(self._models, given.get("model"), kind="model")

    def _tokenize(self, given: Mapping[str, Any]) -> Any:
        model, text = self._model(given), _text(given)
        try:
            return tokenize(model, text)
        except MissingExtraError:  # as the catalog says of such a model
            return tokenize(model, text, tokenizer=build_tokenizer("whitespace"))

    def _trace(self, given: Mapping[str, Any]) -> Any:
        model, gamma, weights = self._model(given), given.get("gamma", 1.0), given.get("weights")
        if model.config.lexicon is not None:
            raise CallError("no-trace", "The model reads characters and words by lists.")
        if not _is_factor(gamma):
            raise InputError(f"`gamma` must be a number up to {_MAX_FACTOR:,}, got {gamma!r:.60}.")
        if not (weights is None or (isinstance(weights, list) and all(map(_is_factor, weights)))):
            raise InputError(
                f"`weights` must be a list of numbers up to {_MAX_FACTOR:,}, got {weights!r:.60}."
            )
        found = trace(model, _words(given), word=_index(given), weights=weights, gamma=gamma)
        return found.as_dict()

    def _surprisal(self, given: Mapping[str, Any]) -> Any:
        words, top = _words(given), given.get("top", 0)
        if len(words) * top > MAX_NAMED:
            raise CallError(
                "too-long",
                f"At most {MAX_NAMED:,} likeliest words are named at once, got {len(words):,} "
                f"words with `top` {top:,}.",
            )
        return list(surprisal_of_words(self._scorer(given).naming(top), [words]))

    def _predict_word(self, given: Mapping[str, Any]) -> Any:
        return predict_of_words(
            self._scorer(given), _words(given), index=_index(given),
            insert=given.get("insert") is True, top=given.get("top", 10),
        )  # fmt: skip

    def _layers(self, given: Mapping[str, Any]) -> bytes:
        model, name, words = self._model(given), str(given["model"]), _words(given)
        if name not in self._embedders:
            self._embedders[name] = Embedder(model, device="cpu")
        (layers,) = self._embedders[name].embed([words], state=given.get("state", "reset"))
        text = json.dumps({"words": words, "shape": layers.shape}).encode()
        filled = text + b" " * (-len(text) % 4)
        return struct.pack("<I", len(text)) + filled + layers.astype("<f4").tobytes()

    def _neighbors(self, given: Mapping[str, Any]) -> Any:
        model, words, index = self._model(given), _words(given), _index(given)
        last = model.num_layers - 1
        layer = given.get("layer", last)
        if not self._corpus:
            raise CallError("not-available", "No corpus was given: `elmokit explore --corpus`.")
        if not (is_number(layer, whole=True) and 1 <= layer <= last and 0 <= index < len(words)):
            raise CallError("bad-input", f"There is no layer {layer!r:.60} or no word {index}.")
        found = self._indexes.get(given["model"])
        if found is None:
            found = self._indexes[given["model"]] = CorpusIndex(model, self._corpus)
        try:
            is_read = found.wait(_SOON_SECONDS)
        except Exception as error:
            del self._indexes[given["model"]]  # the next call reads the corpus again
            told = isinstance(error, (ElmokitError, OSError))
            reason = str(error) if told else f"{type(error).__name__}: {error}"
            raise CallError("bad-corpus", reason) from error
        if not is_read:
            raise CallError("not-yet", "The corpus is being read: ask again.")
        return found.nearest(words, index, layer=layer, top=given.get("top", 10))

    def _scorer(self, given: Mapping[str, Any]) -> TextScorer:
        model = self._model(given)
        if model.softmax is None:
            raise CallError("no-softmax", "This model has no softmax over words and predicts none.")
        if model.word_vocab is None:
            raise CallError("no-vocabulary", "This model has a softmax, but no words for it.")
        key = str(given["model"]), str(given.get("state", "warm"))
        if key not in self._scorers:
            self._scorers[key] = TextScorer(model, state=key[1], precision="fp32")
        return self._scorers[key]

    def _run(self, given: Mapping[str, Any]) -> Any:
        name = given.get("name")
        try:
            found = read_training_run(_named(self._runs, name, kind="run"))
        except (FormatError, FileNotFoundError) as error:
            raise CallError("damaged-run", str(error)) from error
        return {"name": name, "title": name, **vars(found)}

    def _predict(self, given: Mapping[str, Any]) -> Any:
        run = _named(self._tasks, given.get("task"), kind="task")
        return list(run.predict_json([_text(given)]))


def _named(known: Mapping[str, Any], name: Any, *, kind: str) -> Any:
    if not isinstance(name, str) or name not in known:
        listed = ", ".join(known) or "none"
        raise CallError(f"unknown-{kind}", f"There is no {kind} {name!r:.60}; available: {listed}.")
    return known[name]


def _is_factor(value: Any) -> bool:
    return is_number(value) and abs(value) <= _MAX_FACTOR  # not NaN


def _words(given: Mapping[str, Any]) -> list[str]:
    words = given.get("words")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise CallError("bad-input", f"`words` must be a list of strings, got {words!r:.60}.")
    return words


def _text(given: Mapping[str, Any]) -> str:
    text = given.get("text")
    if not isinstance(text, str):
        raise CallError("bad-input", f"`text` must be a string, got {text!r:.60}.")
    return text


def _index(given: Mapping[str, Any]) -> Any:
    index = given.get("index")
    if not is_number(index, whole=True):
        raise CallError("bad-input", f"`index` must be a whole number, got {index!r:.60}.")
    return index


def _check_size(given: Mapping[str, Any]) -> None:
    words = _words(given) if "words" in given else []
    text = " ".join(words) + (_text(given) if "text" in given else "")
    num_bytes = len(text.encode("utf-8", "surrogatepass"))
    if len(words) > MAX_WORDS or num_bytes > MAX_BYTES:
        raise CallError(
            "too-long",
            f"At most {MAX_WORDS:,} words and {MAX_BYTES:,} bytes are computed at once, got "
            f"{len(words):,} words and {num_bytes:,} bytes.",
        )
    top = given.get("top", 0)
    if not (is_number(top, whole=True) and 0 <= top <= MAX_TOP):
        raise CallError("bad-input", f"`top` must be from 0 to {MAX_TOP}, got {top!r:.60}.")


def as_json(answer: Any) -> bytes:
    """Return an answer as JSON."""
    return json.dumps(jsonable(answer), ensure_ascii=True, allow_nan=False).encode()
