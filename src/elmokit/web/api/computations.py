"""What the server computes of texts: vectors, tokens, predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.embed.sentences_and_spans import Pooling
from elmokit.errors import FormatError, InputError
from elmokit.files.json_files import jsonable
from elmokit.inference.contexts import NUM_BOUNDARIES
from elmokit.inference.layers_and_states import check_one_layer
from elmokit.text.alignment import align
from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD
from elmokit.text.given_sentences import check_text, split_sentence
from elmokit.text.normalization import normalize
from elmokit.text.word_vocab import WordVocab
from elmokit.web.server import RequestError
from elmokit.web.startup import ServerSettings

if TYPE_CHECKING:
    from elmokit.tasks.runs.task_run import TaskRun


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a request."""

    value: Any
    """A string or list of words; for predictions also several of these."""
    where: str
    """Its place in the request, for errors."""
    truncate: bool | None = None
    """Cut it instead of refusing it; None: the request cannot ask for that."""
    pooled: bool = False
    """One vector is wanted, not one per word."""

    def check_length(self, number: int, unit: str, limit: int) -> None:
        """Refuse a text that is empty or too long."""
        if number > limit:
            message = f"{self.where} has {number:,} {unit}: at most {limit:,} are read"
            if self.truncate is not None:
                message += ', and of a longer one those with "truncate": true'
            raise RequestError(413, f"{message}.")
        if number == 0 and unit == "words":
            raise RequestError(422, f"{self.where} has no words.")


class Embedding:
    """Vectors of texts, equal to those of the embedder alone."""

    def __init__(self, embedder: Embedder, settings: ServerSettings) -> None:
        self.word_layers = "average" if settings.layers is None else settings.layers
        check_one_layer(self.word_layers)
        if settings.state == "carry":
            raise InputError(
                'state="carry" would let an answer depend on the requests before it: a server '
                'has "reset" and "warm".'
            )
        self._embedder, self._settings = embedder, settings
        self.pool = Pooling(embedder, settings.pooling, layers=settings.layers)

    def prepare(self, text: Text) -> tuple[tuple[list[str], bool], int]:
        """Split a text into words; refuse one that has none, or too many."""
        words = split_text(text, self._embedder, self._settings)
        return (words, text.pooled), len(words) + NUM_BOUNDARIES

    def compute(self, items: list[tuple[list[str], bool]]) -> list[np.ndarray]:
        """Return (2D) of pooled texts and (W, 2D) of others."""
        how = {"state": self._settings.state, "batch_tokens": self._settings.batch_tokens}
        pooled, single = (
            iter(self._embedder.embed([w for w, pool in items if pool == p], layers=layers, **how))
            for p, layers in ((True, self.pool.layers), (False, self.word_layers))
        )
        vectors = [
            self.pool(next(pooled), words) if pool else next(single) for words, pool in items
        ]
        if not all(np.isfinite(array).all() for array in vectors):
            raise FormatError("The vectors contain NaN or infinity: the model is damaged.")
        return vectors


class Tokens:
    """Tokens of texts, with their places in characters; ids are those of the vocabulary."""

    def __init__(self, embedder: Embedder, vocab: WordVocab | None, settings: ServerSettings):
        self._embedder, self._vocab, self._settings = embedder, vocab, settings

    def prepare(self, text: Text) -> tuple[tuple[str, list[str]], int]:
        """Split a text into words."""
        words = split_text(text, self._embedder, self._settings)
        return (text.value, words), max(len(words), len(text.value) // 5)  # of places, too

    def compute(self, items: list[tuple[str, list[str]]]) -> list[list[dict[str, Any]]]:
        """Return the tokens of each text, sentence boundaries included."""
        answers = []
        for text, words in items:
            places = align(words, text) or [(None, None)] * len(words)
            answers.append([
                self._token(SENTENCE_BEGIN_WORD, special=True),
                *(self._token(word, *place) for word, place in zip(words, places, strict=True)),
                self._token(SENTENCE_END_WORD, special=True),
            ])  # fmt: skip
        return answers

    def _token(
        self, word: str, start: int | None = None, stop: int | None = None, *, special: bool = False
    ) -> dict[str, Any]:
        number = None
        if self._vocab is not None:
            number = self._vocab.word_id(normalize(word, self._embedder.normalization))
        return {"id": number, "text": word, "special": special, "start": start, "stop": stop}


class Prediction:
    """Answers of a trained task model, as `elmokit predict --json` prints them."""

    def __init__(self, run: "TaskRun", settings: ServerSettings) -> None:
        self.run, self._settings = run, settings

    def prepare(self, text: Text) -> tuple[Text, int]:
        """Estimate the size of a text from its characters; refuse an empty or a long one."""
        num_characters = _num_characters(text.value)
        text.check_length(num_characters, "characters", self._settings.max_characters)
        text.check_length(_num_words(text.value), "words", self._settings.max_words)
        if isinstance(text.value, str):
            check_text(text.value, where=text.where)
        else:
            try:
                self.run.task.from_words(text.value, str.split)  # only whether lists are in place
            except (InputError, TypeError) as error:
                raise RequestError(422, f"{text.where}: {error}") from error
        return text, num_characters // 5 + NUM_BOUNDARIES

    def compute(self, items: list[Text]) -> Sequence[Any]:
        """Return what `TaskRun.predict_json` says of each text."""
        values, names = [text.value for text in items], [text.where for text in items]
        return jsonable(list(self.run.predict_json(values, names=names)))


def split_text(text: Text, embedder: Embedder, settings: ServerSettings) -> list[str]:
    """Return the words of a text; refuse one that has none, or too many."""
    sentence = text.value
    if isinstance(sentence, str):
        check_text(sentence, where=text.where)
        sentence = normalize(sentence, embedder.normalization)  # decomposed text is longer before
        if text.truncate:
            sentence = sentence[: settings.max_characters]
        text.check_length(len(sentence), "characters", settings.max_characters)
    words = split_sentence(sentence, embedder.tokenizer.tokenize, where=text.where)
    if text.truncate:
        words = words[: settings.max_words]
    text.check_length(len(words), "words", settings.max_words)
    return words


def _num_words(value: Any) -> int:
    """Return the number of words, in strings between spaces."""
    if isinstance(value, str):
        return len(value.split())
    return sum(_num_words(part) for part in value)


def _num_characters(value: Any) -> int:
    if isinstance(value, str):
        return len(normalize(value, "NFC"))
    return sum(_num_characters(part) + 1 for part in value)
