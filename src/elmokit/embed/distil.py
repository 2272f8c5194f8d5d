"""Static vectors from contexts: the mean of a word's vectors over its occurrences in a corpus.

Source: Bommasani, Davis and Cardie 2020, "Interpreting pretrained contextualized representations
via reductions to static embeddings". The means are centered and whitened and the words weighted as
in `elmokit.embed.sentences_and_spans`, so that the mean of the rows of a sentence is its vector.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.embed.sentences_and_spans import SMOOTHING, SifStatistics, lower_case_shares
from elmokit.embed.streaming import StatePolicy
from elmokit.errors import FormatError, InputError, counted
from elmokit.files.atomic import check_target
from elmokit.files.json_files import write_json
from elmokit.files.sources import find_files
from elmokit.files.temporary import scratch_directory
from elmokit.inference.layers_and_states import Layers, check_layers, check_one_layer
from elmokit.text.word_counter import WordCounter
from elmokit.vectors.safetensors_file import SUFFIX, Table, write_table
from elmokit.vectors.training import corpus_shards
from elmokit.vectors.vector_files import write_vectors

SUFFIXES = (SUFFIX, ".bin", ".txt", ".vec")


@dataclass(frozen=True, kw_only=True)
class DistilReport:
    path: Path
    words: int
    dim: int
    corpus_words: int
    coverage: float
    """Share of the corpus words that have a vector."""
    seconds: float


def distil(
    model: str,
    corpus: Sequence[str | Path],
    output: Path,
    *,
    layers: Layers | str = "average",
    state: StatePolicy | str = "reset",
    min_count: int = 5,
    max_words: int = 100_000,
    remove: int | None = None,
    column: str | None = None,
    overwrite: bool = False,
    on_progress: Callable[[int, int], object] = lambda done, total: None,
) -> DistilReport:
    """Write a table of static vectors of the frequent words of a corpus.

    Args:
        model: Directory or name.
        corpus: Text files, read and split as for pre-training with this model, or directories of
            shards that runs trained on.
        output: ``.safetensors`` (also for ``statistics`` of `embed_sentences`), ``.bin``, ``.txt``
            or ``.vec``; beside all but the first ``OUTPUT.json`` records how it was made.
        layers: As in `Embedder.embed`, except ``"all"``.
        state: As in `Embedder.embed`.
        min_count: Rarer words get no vector.
        max_words: The most frequent words that get one; bounds the memory.
        remove: Leading components to remove, instead of whitening.
        column: Field of JSON lines, or column of a table, that holds the text.
        overwrite: Replace the output.
        on_progress: Called with the words done and their total.

    Raises:
        InputError, FormatError: for what cannot be read or written, and a corpus without words
            that are frequent enough.
    """
    if output.suffix.lower() not in SUFFIXES:
        raise InputError(f"The suffix of a table must be one of {', '.join(SUFFIXES)}: {output}.")
    if min_count < 1 or max_words < 2:
        raise InputError("`min_count` must be at least 1, and `max_words` at least 2.")
    check_one_layer(layers)
    paths = list(map(Path, corpus))
    is_table = output.suffix.lower() == SUFFIX
    metadata_path = output.with_name(f"{output.name}.json")
    for target in (output,) if is_table else (output, metadata_path):
        check_target(target, inputs=find_files(paths), overwrite=overwrite)
    embedder = Embedder.load(model)
    check_layers(layers, embedder.num_layers)
    if remove is not None and not 0 <= remove < embedder.dim:
        raise InputError(f"`remove` must be 0 to {embedder.dim - 1} components, got {remove}.")
    started = time.monotonic()
    with scratch_directory("elmokit-distil") as folder:
        sets = corpus_shards(paths, folder, model=model, column=column)

        def sentences() -> Iterator[list[str]]:
            return chain.from_iterable(shards.sentences() for shards in sets)

        with WordCounter() as counter:
            for sentence in sentences():
                counter.add(sentence)
            num_words = counter.num_words
            frequent = counter.most_common(min_count=min_count, max_size=max_words)
        words = [word for word, _ in frequent if " " not in word]
        occurrences = np.array([count for word, count in frequent if " " not in word])
        if len(words) < 2:
            raise FormatError(
                f"Fewer than two words occur {min_count} times among the "
                f"{counted(num_words, 'word')} of this corpus. Give more text or a smaller "
                "min_count."
            )
        row_of = {word: row for row, word in enumerate(words)}
        sums = np.zeros((len(words), embedder.dim))
        num_done = 0
        for embedded in embedder.stream(sentences(), layers=layers, state=state):
            for word, vector in zip(embedded.words, embedded.vectors, strict=True):
                if (row := row_of.get(word)) is not None:
                    sums[row] += vector
            num_done += len(embedded.words)
            on_progress(num_done, num_words)
    means = (sums / occurrences[:, None]).astype(np.float32)
    shares = lower_case_shares(zip(words, occurrences.tolist(), strict=True))
    statistics = SifStatistics.measure(words, shares, means, remove=remove)
    vectors = statistics.words(means, words)
    made_by = embedder.metadata(layers=layers, state=state) | {
        "smoothing": SMOOTHING, "min_count": min_count, "remove": remove, "words": num_words,
    }  # fmt: skip
    if is_table:
        write_table(output, Table(
            words=words, vectors=vectors, counts=occurrences, mean=statistics.mean,
            whitening=statistics.whitening, made_by=made_by,
        ))  # fmt: skip
    else:
        write_vectors(output, words, vectors)
        write_json(metadata_path, made_by, indent=2)
    return DistilReport(
        path=output, words=len(words), dim=embedder.dim, corpus_words=num_words,
        coverage=int(occurrences.sum()) / num_words, seconds=time.monotonic() - started,
    )  # fmt: skip
