"""Static word vectors trained by gensim (extra ``static``), compared with a biLM of the same text.

Text is read and split as for pre-training, into temporary shards, or comes from the shards of a
run, so both see the same words. Memory holds the vectors and the word counts, not the text.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from elmokit.config import to_dict
from elmokit.corpus.preparation import find_text, is_finished
from elmokit.corpus.shards import ShardSet
from elmokit.corpus.text_shards import TextConfig, TextShards
from elmokit.errors import Bounds, CheckedFields, FormatError, Seed, counted, needs_extra
from elmokit.files.atomic import atomic_file, check_target
from elmokit.files.json_files import write_json
from elmokit.files.sources import find_files
from elmokit.files.temporary import scratch_directory
from elmokit.files.text_reader import ReadReport
from elmokit.text.normalization import DEFAULT_NORMALIZATION, Normalization
from elmokit.text.tokenizers.registry import AUTO, TokenizerConfig, tokenizer_for_model
from elmokit.text.word_counter import WordCounter
from elmokit.vectors.vector_files import check_suffix, write_vectors
from elmokit.version import __version__
from elmokit.weights.locate import find_model
from elmokit.weights.model_files import read_config

log = logging.getLogger(__name__)

VectorAlgorithm = Literal["skipgram", "cbow", "fasttext"]
OnProgress = Callable[[Literal["tokenizing", "training"], int, int | None], object]
"""Called with the stage, its words so far, and their total if it is known."""

MAX_SENTENCE_WORDS = 10_000
"""gensim's limit; it would silently ignore the rest of a longer sentence."""
_SENTENCES_AN_EVENT = 1000
_Number = Annotated[int, Bounds(1, 2**31 - 1)]


@dataclass(frozen=True, kw_only=True)
class VectorsConfig(CheckedFields):
    """How vectors are trained; everything else is gensim's default."""

    kind: VectorAlgorithm = "skipgram"
    """``fasttext`` is skip-gram with n-grams (3 to 6), which also gives vectors to unseen words."""
    dim: _Number = 256
    window: _Number = 5
    """Maximum number of words on each side that are predicted (cbow: that predict)."""
    min_count: _Number = 5
    """Rarer words get no vector."""
    epochs: _Number = 5
    negative: _Number = 5
    """Random words that each target is contrasted with."""
    buckets: _Number = 500_000
    """fasttext: hash rows for n-grams, of ``dim`` numbers each in memory and in the binary file."""
    seed: Seed = 0


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


def train_vectors(
    corpus: Sequence[str | Path],
    output: Path,
    config: VectorsConfig,
    *,
    model: str | None = None,
    tokenizer: str | None = None,
    column: str | None = None,
    threads: int = 1,
    overwrite: bool = False,
    on_progress: OnProgress = lambda stage, done, total: None,
) -> VectorsReport:
    """Train vectors on a corpus; write them and a JSON file with their settings and corpus.

    Reproducible on the same machine with one thread and the same seed. ``corpus`` is text files, or
    directories of shards that runs trained on (``DIR/shards``). ``output`` ends in ``.bin``
    (word2vec, or fastText for that kind), ``.txt`` or ``.vec`` (text, without fastText's n-grams).
    The tokenizer is that of ``model``, ``tokenizer``, the shards, or ``simple``. ``column`` is the
    field of JSON lines, or column of a table, that holds the text. ``on_progress`` is also called
    from another thread.
    """
    suffix = check_suffix(output)
    with needs_extra("static", module="gensim"):
        import gensim.models  # noqa: F401 (fail now, not after hours of tokenization)
    metadata_path = output.with_name(f"{output.name}.json")
    paths, read = list(map(Path, corpus)), ReadReport()
    for path in (output, metadata_path):
        check_target(path, inputs=find_files(paths), overwrite=overwrite)
    with scratch_directory("elmokit-vectors") as folder:
        sets = corpus_shards(
            paths, folder, model=model, tokenizer=tokenizer, column=column, report=read,
            on_words=lambda num_words: on_progress("tokenizing", num_words, None),
        )  # fmt: skip
        sentences = _Sentences(sets, config, on_progress)
        started = time.monotonic()
        trained = _train(sentences, config, threads)
        seconds = time.monotonic() - started
    used = sets[0].tokenizer or TokenizerConfig()
    form = sets[0].metadata.get("normalization") or "NFC"
    report = VectorsReport(
        path=output, metadata_path=metadata_path, words=len(sentences.counts), dim=config.dim,
        corpus_sentences=sentences.num_sentences, corpus_words=sentences.num_words,
        coverage=sum(sentences.counts.values()) / sentences.num_words,
        skipped={str(reason): count for reason, count in read.skipped.items()},
        tokenizer=used, normalization=form, seconds=seconds,
    )  # fmt: skip
    if config.kind == "fasttext" and suffix == ".bin":
        from gensim.models.fasttext import save_facebook_model

        with atomic_file(output) as temp_path:
            save_facebook_model(trained, str(temp_path))
    else:
        write_vectors(output, trained.wv.index_to_key, trained.wv.vectors)
    learning = {"learning_rate": float(trained.alpha), "sample": float(trained.sample)}
    write_json(metadata_path, {
        "elmokit_version": __version__, "made_by": {"gensim": version("gensim")},
        "settings": {**to_dict(config), **learning, "threads": threads}, "words": report.words,
        "tokenizer": to_dict(used), "normalization": form, "model": model,
        "corpus": {
            "files": [file for shards in sets for file in shards.metadata.get("sources", [])],
            "sentences": report.corpus_sentences, "words": report.corpus_words,
            "skipped": report.skipped, "coverage": report.coverage,
        },
        "seconds": seconds,
    }, indent=2)  # fmt: skip
    return report


def corpus_shards(
    corpus: Sequence[Path],
    folder: Path,
    *,
    model: str | None = None,
    tokenizer: str | None = None,
    column: str | None = None,
    report: ReadReport | None = None,
    on_words: Callable[[int], object] = lambda num_words: None,
) -> list[ShardSet]:
    """Return the finished shards that a corpus is, or write those of its text to a folder.

    Shards of several runs must agree in tokenizer and normalization. With a model, all are to have
    its tokenizer and normalization; ``tokenizer`` overrides it.
    """
    wanted, normalization = TokenizerConfig(name=tokenizer or AUTO), DEFAULT_NORMALIZATION
    if model is not None:
        config = read_config(find_model(model))
        wanted = tokenizer_for_model(config.tokenizer, tokenizer)
        normalization = config.bilm.char_vocab.normalization
    text_shards = TextShards(
        TextConfig(tokenizer=wanted, field=column),
        normalization,
        lambda progress: on_words(progress.words),
    )
    if not all(is_finished([path]) for path in corpus):
        return [text_shards.make(find_text(corpus).corpus, folder, report=report)[0]]
    finished, is_fixed = [ShardSet.open(path) for path in corpus], model is not None
    for shards in finished:  # refuses others
        text_shards, is_fixed = text_shards.like(shards, normalization_is_fixed=is_fixed), True
    if column is not None:
        log.warning("--column has no effect on finished shards")
    return finished


class _Sentences:
    """The sentences of shards, restarted at each iteration, as gensim needs them.

    ``counts`` are those of the words that are frequent enough, by falling count, ties in code point
    order. ``error`` is what stopped the last iteration.
    """

    def __init__(
        self, sets: Sequence[ShardSet], config: VectorsConfig, on_progress: OnProgress
    ) -> None:
        self._sets, self._on_progress, self._epochs = sets, on_progress, config.epochs
        self._num_read, self.error = 0, None
        self.num_sentences = sum(shards.num_sentences for shards in sets)
        with WordCounter() as counter:
            for shard in chain.from_iterable(sets):
                counts: Counter[str] = Counter()
                for word, number in zip(shard.words, shard.counts(), strict=True):
                    for piece in _pieces(word):
                        counts[piece] += number
                counter.add_counts([*counts], [*counts.values()])
            self.counts = dict(counter.most_common(min_count=config.min_count))
            self.num_words = counter.num_words
        if not self.counts:
            words = counted(self.num_words, "word")
            raise FormatError(f"No word occurs min_count={config.min_count} times among {words}.")

    def __iter__(self) -> Iterator[list[str]]:
        try:
            sentences = chain.from_iterable(shards.sentences() for shards in self._sets)
            for number, sentence in enumerate(sentences):
                words = [piece for word in sentence for piece in _pieces(word)]
                for begin in range(0, len(words), MAX_SENTENCE_WORDS):
                    yield words[begin : begin + MAX_SENTENCE_WORDS]
                self._num_read += len(words)
                if number % _SENTENCES_AN_EVENT == 0:
                    total = self.num_words * self._epochs
                    self._on_progress("training", self._num_read, total)
        # gensim iterates in its own thread and would hang if that died
        except Exception as error:
            self.error = error


def _pieces(word: str) -> list[str]:
    """Divide a word with blanks inside (``1 000`` in treebanks), which no file of vectors has."""
    return [piece for piece in word.split(" ") if piece] if " " in word else [word]


def _train(sentences: _Sentences, config: VectorsConfig, threads: int) -> Any:
    from gensim.models import FastText, Word2Vec

    same_names = ("window", "min_count", "negative", "epochs", "seed")
    settings: dict[str, Any] = {
        **{name: getattr(config, name) for name in same_names},
        "vector_size": config.dim,
        "workers": threads,
        "sorted_vocab": 0,  # already sorted, with a meaningful order of ties
        "sg": int(config.kind != "cbow"),
    }
    if config.kind == "fasttext":
        model = FastText(bucket=config.buckets, **settings)
    else:
        model = Word2Vec(**settings)
    # gensim would count the words again, and order equal counts by chance
    model.build_vocab_from_freq(sentences.counts, corpus_count=sentences.num_sentences)
    model.corpus_total_words = sentences.num_words
    model.train(sentences, total_words=sentences.num_words, epochs=config.epochs)
    if sentences.error is not None:
        raise sentences.error
    return model
