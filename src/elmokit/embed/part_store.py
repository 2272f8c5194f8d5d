"""The finished sentences of an embedding job: blocks of them in files, complete or absent.

``part-FIRST-END.npz`` in ``OUT.parts`` has the sentences FIRST to END - 1 of the job, with the
LSTM state after them where states are carried. The job itself is `elmokit.jobs.job`.
"""

import json
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from elmokit.embed.formats.rows import Row
from elmokit.errors import FormatError
from elmokit.files.arrays import Archive, open_archive
from elmokit.files.atomic import atomic_file
from elmokit.files.sources import damage
from elmokit.inference.layers_and_states import LSTMState
from elmokit.jobs.job import Pieces

logger = logging.getLogger(__name__)

_NAME = re.compile(r"part-(\d{12,})-(\d{12,})\.npz")
_ADVICE = (
    "Remove this file and run the command again with --resume; its sentences and those after them "
    "are embedded again."
)


class PartStore(Pieces):
    """The parts of one job, in order and without a gap."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, "part-")

    def drop_after_gap(self) -> None:
        """Remove the parts that follow a gap, which a damaged part leaves that was removed."""
        end = 0
        for path in self.paths():
            first, last = _range_of(path)
            if first == end:
                end = last
            else:
                logger.info("there is a gap before %s: its sentences are computed again", path)
                path.unlink()

    @property
    def num_sentences(self) -> int:
        return 0 if self.latest is None else _range_of(self.latest)[1]

    def add(self, first: int, rows: Sequence[Row], state: LSTMState | None) -> None:
        """Store sentences, of which the first is number ``first``, and the state after them."""
        if not rows:
            return
        texts = json.dumps([[row.text for row in rows], [row.tokens for row in rows]])
        arrays: dict[str, np.ndarray] = {
            "values": np.concatenate([row.vectors.reshape(-1) for row in rows]),
            "shapes": np.array([row.vectors.shape for row in rows], dtype=np.int64),
            "indices": np.array([row.line_number for row in rows], dtype=np.int64),
            "sentences": np.frombuffer(texts.encode("ascii"), dtype=np.uint8),
        }
        if state is not None:
            arrays |= {"hidden": state.hidden, "cell": state.cell}
        path = self.folder / f"part-{first:012d}-{first + len(rows):012d}.npz"
        try:
            # without parents: a directory made again would be without what was in it
            with atomic_file(path, parents=False) as temp_path, temp_path.open("wb") as file:
                np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]
        except FileNotFoundError:
            self._refuse_gap(0, first)
            raise

    def texts(self) -> Iterator[tuple[int, str, int]]:
        """Yield index, line and number of words of every finished sentence."""
        for path in self.paths():
            with _opened(path) as file:
                indices, texts, tokens = _sentences(file)
            yield from zip(indices, texts, map(len, tokens), strict=True)

    def blocks(self, num_sentences: int) -> Iterator[list[Row]]:
        """Yield the contents of the parts, in order, which must be so many sentences."""
        end = 0
        for path in self.paths():
            first, last = _range_of(path)
            self._refuse_gap(end, first)
            with _opened(path) as file:
                shapes = file["shapes"]
                # all values are one vector: cut it where each sentence ends
                pieces = np.split(file["values"], np.cumsum(shapes.prod(axis=1))[:-1])
                vectors = [v.reshape(s) for v, s in zip(pieces, shapes, strict=True)]
                rows = zip(*_sentences(file), vectors, strict=True)
                block = [Row(*row) for row in rows]
            yield block
            end = last
        self._refuse_gap(end, num_sentences)

    def _refuse_gap(self, first: int, end: int) -> None:
        if first != end:
            raise FormatError(
                f"{self.folder}: sentences {first:,} to {end - 1:,} were removed while the job "
                "ran. Run the command again with --resume: it embeds them."
            )

    def last_state(self) -> LSTMState | None:
        """Return the LSTM state after the last finished sentence, if states are kept."""
        if self.latest is None:
            return None
        with _opened(self.latest) as file:
            if "hidden" not in file:
                return None
            return LSTMState(file["hidden"], file["cell"])


def _range_of(path: Path) -> tuple[int, int]:
    """Return the numbers of the first sentence of a part and of its last one + 1."""
    name = _NAME.fullmatch(path.name)
    if name is None:
        raise FormatError(f"{path} is no part of an embedding job. Move it away.")
    return int(name[1]), int(name[2])


@contextmanager
def _opened(path: Path) -> Iterator[Archive]:
    """Open a part; raise `FormatError` if it is damaged."""
    first, end = _range_of(path)
    with open_archive(path, advice=_ADVICE) as arrays, damage(path, _ADVICE):
        count = len(arrays["shapes"])
        if count != end - first:
            raise ValueError(f"it has vectors of {count} of {end - first} sentences")
        yield arrays


def _sentences(file: Archive) -> tuple[list[int], list[str], list[list[str]]]:
    texts, tokens = json.loads(file["sentences"].tobytes())
    return file["indices"].tolist(), texts, tokens
