"""The files of all shards of a text (``embed --shard i/N``) to one file."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.formats.registry import find_format
from elmokit.embed.formats.rows import Row
from elmokit.embed.job import PART_BYTES, PART_SENTENCES
from elmokit.embed.vector_sequence import VectorSequence, open_vectors
from elmokit.errors import InputError
from elmokit.files.atomic import atomic_file, check_target
from elmokit.jobs.identity import changes

_OF_ONE_SHARD = ("shard", "num_sentences", "num_words", "text_sha256")


@dataclass(frozen=True, kw_only=True)
class MergeReport:
    output: Path
    shards: int
    sentences: int
    words: int
    metadata: dict[str, Any]
    """As in the file."""


def merge_shards(
    paths: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> MergeReport:
    """Write the sentences of all shards, given in any order, to one file in the order of the text.

    The suffix of ``output`` sets the format, within the format name of the shards. The metadata are
    those of the shards, whose text hashes are listed as ``shards_text_sha256``. Memory holds 8
    bytes per sentence and some sentences of each shard (AllenNLP: also all lines).

    Raises:
        InputError: if the files do not belong together: different settings, a shard that is
            missing or given twice, a file that is no shard or not whole.
        FileExistsError: if the output exists and ``overwrite`` is not set.
    """
    target = Path(output)
    with ExitStack() as stack:
        shards = _in_order([stack.enter_context(open_vectors(path)) for path in paths])
        each = [shard.metadata for shard in shards]
        metadata = _shared(each[0]) | {
            "shard": "0/1",
            "num_sentences": sum(map(len, shards)),
            "num_words": sum(one.get("num_words", 0) for one in each),
            "shards_text_sha256": [one.get("text_sha256") for one in each],
        }
        output_format = find_format(target, str(metadata.get("format")))
        check_target(target, inputs=paths, overwrite=overwrite)
        alike = [shard.path for shard in shards if shard.path.suffix == target.suffix]
        with atomic_file(target) as temp_path:
            output_format.module.write(
                temp_path, _blocks(shards), metadata,
                num_bytes=sum(path.stat().st_size for path in alike),
            )  # fmt: skip
    return MergeReport(
        output=target, shards=len(shards), sentences=metadata["num_sentences"],
        words=metadata["num_words"], metadata=metadata,
    )  # fmt: skip


def _in_order(opened: Sequence[VectorSequence]) -> list[VectorSequence]:
    """Return the shards by number, after checking that they are all there and belong together."""
    names = {str(shard.metadata.get("shard")): shard for shard in opened}
    expected = [f"{number}/{len(opened)}" for number in range(len(opened))]
    if len(opened) < 2 or set(names) != set(expected):
        parts = ", ".join(f"{shard.path} is {shard.metadata.get('shard')}" for shard in opened)
        raise InputError(f"Give each shard of one text once: 0/N to N-1/N; {parts}.")
    shards = [names[name] for name in expected]
    num_lines = sum(map(len, shards))
    for number, shard in enumerate(shards):
        if differences := changes(_shared(shards[0].metadata), _shared(shard.metadata)):
            raise InputError(
                f"{shard.path} and {shards[0].path} were not made by the same command: "
                f"{'; '.join(map(str, differences))}."
            )
        if not np.array_equal(shard.line_numbers, np.arange(number, num_lines, len(shards))):
            raise InputError(f"{shard.path} is of another text than the others, or incomplete.")
    return shards


def _shared(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in _OF_ONE_SHARD}


def _blocks(shards: Sequence[VectorSequence]) -> Iterator[list[Row]]:
    """Yield the sentences in the order of the text: one of each shard in turn."""
    texts: dict[int, str] = {}
    for shard in shards:
        texts |= shard.texts()
    streams = [iter(shard) for shard in shards]
    rows: list[Row] = []
    num_bytes = 0
    for line in range(sum(map(len, shards))):
        # shard i of N has the lines i, i + N, i + 2N, …
        tokens, vectors = next(streams[line % len(shards)])
        rows.append(Row(line, texts.get(line), tokens, vectors))
        num_bytes += vectors.nbytes
        if num_bytes >= PART_BYTES or len(rows) >= PART_SENTENCES:
            yield rows
            rows, num_bytes = [], 0
    yield rows
