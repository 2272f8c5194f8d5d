"""Static word vectors trained by gensim (extra ``static``), compared with a biLM of the same text.

Text is read, normalized and split as for pre-training, or comes from the shards of a run, so both
see the same words. It is tokenized once, into a temporary file that gensim reads in every epoch;
memory holds the vectors and the word counts, not the text.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from elmokit.config import to_dict
from elmokit.corpus.preparation import SHARDS
from elmokit.corpus.sentence_file import (
    SentenceFile,
    TokenizedCorpus,
    open_corpus,
    write_sentence_file,
)
from elmokit.corpus.shards import MANIFEST_NAME
from elmokit.errors import InputError, MissingExtraError
from elmokit.field_checks import SEEDS, check_choices, check_ranges
from elmokit.files.atomic import atomic_file, check_target
from elmokit.files.json_files import write_json
from elmokit.files.temporary import scratch_directory
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.registry import TokenizerConfig, tokenizer_for_model
from elmokit.vectors.vector_files import check_suffix, write_vectors
from elmokit.version import __version__
from elmokit.weights.locate import CONFIG_NAME, RUN_CONFIG_NAME, find_model
from elmokit.weights.model_files import WEIGHTS_NAME, read_config

Kind = Literal["skipgram", "cbow", "fasttext"]
OnProgress = Callable[[Literal["tokenizing", "training"], int, int | None], object]
"""Called with the stage, its words so far, and their total if it is known."""

MAX_SENTENCE_WORDS = 10_000
"""gensim's limit; it would silently ignore the rest of a longer sentence."""
_SENTENCES_AN_EVENT = 1000


@dataclass(frozen=True, kw_only=True)
class VectorsConfig:
    """How vectors are trained; everything else is gensim's default."""

    kind: Kind = "skipgram"
    """word2vec's ``skipgram`` or ``cbow``, or ``fasttext``: skip-gram with character n-grams (3 to
    6), which also gives vectors to unseen words.
    """
    dim: int = 256
    """Width of a vector."""
    window: int = 5
    """Maximum number of words on each side that are predicted (cbow: that predict)."""
    min_count: int = 5
    """Rarer words get no vector."""
    epochs: int = 5
    """Passes over the text."""
    negative: int = 5
    """Random words that each target is contrasted with."""
    buckets: int = 500_000
    """fasttext: hash rows for n-grams, of ``dim`` numbers each in memory and in the binary file."""
    seed: int = 0
    """Of initial vectors, windows and random words."""

    def __post_init__(self) -> None:
        check_choices(self)
        counts = ("dim", "window", "min_count", "epochs", "negative", "buckets")
        check_ranges(self, seed=SEEDS, **dict.fromkeys(counts, (1, 2**31 - 1)))


@dataclass(frozen=True, kw_only=True)
class VectorsReport:
    """What `train_vectors` wrote; ``words`` of them have a vector."""

    path: Path
    metadata_path: Path
    words: int
    dim: int
    corpus_sentences: int
    corpus_words: int
    coverage: float
    """Share of the corpus words that have a vector."""
    skipped: dict[str, int]
    """Lines of the corpus without usable text, by reason."""
    tokenizer: TokenizerConfig
    normalization: Normalization
    seconds: float
    """Of the training, without tokenization."""


def train_vectors(
    corpus: Sequence[str | Path],
    output: Path,
    config: VectorsConfig,
    *,
    model: str | None = None,
    tokenizer: str | None = None,
    threads: int = 1,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> VectorsReport:
    """Train vectors on a corpus; write them and a JSON file with their settings and corpus.

    Reproducible on the same machine with one thread and the same seed. ``<S>``, ``</S>``, ``<UNK>``
    and ``<unk>`` get no vector.

    Args:
        corpus: Text files, or directories of shards that runs trained on (``DIR/shards``).
        output: ``.bin``: binary form of word2vec, or of fastText for that kind; ``.txt``, ``.vec``:
            text, without fastText's n-grams.
        config: How.
        model: Use the tokenizer and normalization of this model directory.
        tokenizer: Overrides the model's; without a model or shards the default is ``simple``.
        threads: Of gensim.
        overwrite: Replace existing files.
        on_progress: Called regularly, also from another thread.

    Raises:
        MissingExtraError: without gensim, or the library of the tokenizer.
        FileNotFoundError: if a file or the model is missing.
        FileExistsError: if the output exists and ``overwrite`` is not set.
        FormatError: if the text cannot be read or no word is frequent enough.
        ConfigError: if the shards were made with another tokenizer.
        InputError: for an unknown suffix of the output.
    """
    check_suffix(output)
    try:
        import gensim.models  # noqa: F401 (fail now, not after hours of tokenization)
    except ImportError as error:
        raise MissingExtraError("gensim", extra="static") from error
    metadata_path = output.with_name(f"{output.name}.json")
    text = open_corpus_of_model(list(map(Path, corpus)), model, tokenizer)
    for path in (output, metadata_path):
        check_target(path, inputs=text.inputs, overwrite=overwrite)
    tell = on_progress or (lambda stage, done, total: None)
    files = text.describe()
    with scratch_directory("elmokit-vectors") as folder:
        sentences = write_sentence_file(
            text,
            folder / "sentences.txt",
            max_words=MAX_SENTENCE_WORDS,
            min_count=config.min_count,
            on_words=lambda num_words: tell("tokenizing", num_words, text.num_words),
        )
        started = time.monotonic()
        trained = _train(sentences, config, threads, tell)
        seconds = time.monotonic() - started
    report = VectorsReport(
        path=output, metadata_path=metadata_path,
        words=len(sentences.counts), dim=config.dim,
        corpus_sentences=sentences.num_sentences, corpus_words=sentences.num_words,
        coverage=sentences.coverage,
        skipped={str(reason): count for reason, count in text.report.skipped.items()},
        tokenizer=text.tokenizer, normalization=text.normalization,
        seconds=seconds,
    )  # fmt: skip
    if config.kind == "fasttext" and check_suffix(output) == ".bin":
        from gensim.models.fasttext import save_facebook_model

        with atomic_file(output) as temp_path:
            save_facebook_model(trained, str(temp_path))
    else:
        write_vectors(output, trained.wv.index_to_key, trained.wv.vectors)
    learning = {"learning_rate": float(trained.alpha), "sample": float(trained.sample)}
    metadata = {
        "elmokit_version": __version__,
        "made_by": {"gensim": version("gensim")},
        "settings": {**to_dict(config), **learning, "threads": threads},
        "words": report.words,
        "tokenizer": to_dict(report.tokenizer),
        "normalization": report.normalization,
        "model": model,
        "corpus": {
            "files": files,
            "sentences": report.corpus_sentences,
            "words": report.corpus_words,
            "skipped": report.skipped,
            "coverage": report.coverage,
        },
        "seconds": report.seconds,
    }
    write_json(metadata_path, metadata, indent=2)
    return report


METADATA_KEYS = ("elmokit_version", "made_by", "settings", "corpus")
"""Some of the keys of the JSON file beside vectors, by which it is known."""


def open_corpus_of_model(
    corpus: Sequence[Path], model: str | None, tokenizer: str | None
) -> TokenizedCorpus:
    """Open a corpus, with the tokenizer and normalization of a model if one is given."""
    for folder in corpus:
        is_run = (folder / SHARDS / MANIFEST_NAME).is_file()
        is_model = (folder / WEIGHTS_NAME).is_file() and any(
            (folder / name).is_file() for name in (CONFIG_NAME, RUN_CONFIG_NAME)
        )
        if is_run or is_model:
            what = "training run" if is_run else "model"
            raise InputError(
                f"{folder} is a {what}, not text. Give text files, or the shards that a run was "
                f"trained on: {folder / SHARDS}."
            )
    if model is None:
        return open_corpus(corpus, tokenizer=tokenizer)
    config = read_config(find_model(model))
    return open_corpus(
        corpus,
        tokenizer=tokenizer_for_model(config.tokenizer, tokenizer),
        normalization=config.bilm.char_vocab.normalization,
    )


class _Sentences:
    """The sentences of a file, restarted at each iteration, as gensim needs them.

    gensim iterates in its own thread and would hang if that died, so an error ends the iteration
    and is kept for `check`.
    """

    def __init__(self, text: SentenceFile, epochs: int, on_progress: OnProgress) -> None:
        self._text, self._on_progress = text, on_progress
        self._num_read, self._total = 0, text.num_words * epochs
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[list[str]]:
        try:
            for number, words in enumerate(self._text.lines()):
                self._num_read += len(words)
                if number % _SENTENCES_AN_EVENT == 0:
                    self._on_progress("training", self._num_read, self._total)
                yield words
        except Exception as error:
            self._error = error

    def check(self) -> None:
        """Raise the error that ended an iteration, if any."""
        if self._error is not None:
            raise self._error


def _train(text: SentenceFile, config: VectorsConfig, threads: int, on_progress: OnProgress) -> Any:
    from gensim.models import FastText, Word2Vec

    same_names = ("window", "min_count", "negative", "epochs", "seed")
    settings: dict[str, Any] = {
        **{name: getattr(config, name) for name in same_names},
        "vector_size": config.dim,
        "workers": threads,
        "sorted_vocab": 0,  # already sorted, with a meaningful order of ties
    }
    if config.kind == "fasttext":
        model = FastText(sg=1, bucket=config.buckets, **settings)
    else:
        model = Word2Vec(sg=int(config.kind == "skipgram"), **settings)
    # gensim would count the words again, and order equal counts by chance.
    model.build_vocab_from_freq(text.counts, corpus_count=text.num_sentences)
    model.corpus_total_words = text.num_words
    sentences = _Sentences(text, config.epochs, on_progress)
    model.train(sentences, total_words=text.num_words, epochs=config.epochs)
    sentences.check()
    return model
