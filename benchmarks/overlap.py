"""How much of a data set is in the text that a model was pre-trained on.

    python benchmarks/overlap.py --corpus FILE… --task nli --data FILE [--write-rest FILE]

A text of the data (the context of ``qa``, the premise of ``nli``, the text of ``sentiment``) is cut
into probes of ``--characters`` characters, without a shorter piece at its end; a text that is
shorter as a whole is its own probe. A probe is found if the corpus has it anywhere, also across the
ends of lines. Of fewer than `MIN_CHARACTERS` characters it must be a whole line: the shortest texts
are part of others by accident. Data and corpus are compared as our models read them, normalized by
``plain-1``, with single spaces.

The corpus is read once, line by line; only the data is in memory. ``--write-rest`` writes the
examples of whose text nothing was found, in the format of the data, so that a model can be scored
without the others. Prints one JSON object.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from common import print_result

from elmokit.cli.error_messages import exit_on_user_error
from elmokit.corpus.readers import ReadReport, read_text_lines
from elmokit.errors import InputError
from elmokit.files.atomic import atomic_file, check_target
from elmokit.files.sources import find_files
from elmokit.tasks.classification import NliTask, SentimentTask
from elmokit.tasks.formats.records import first_named, read_records
from elmokit.tasks.sampling import paragraphs_of, records_of
from elmokit.text.normalization import normalize

MIN_CHARACTERS = 12
"""Of probes that are looked for inside lines."""
TASKS = {"qa": (".json",), "nli": (".jsonl", ".tsv"), "sentiment": (".jsonl", ".tsv")}
"""Tasks with raw text, and the endings of their files."""


class ProbeSearch:
    """Finds probes in a stream of lines.

    Args:
        probes: Normalized texts, none empty.
    """

    def __init__(self, probes: Iterable[str]) -> None:
        self.found: set[str] = set()
        self._by_start: dict[str, list[str]] = {}
        self._whole_lines: set[str] = set()
        self._longest = 1
        for probe in set(probes):
            if len(probe) < MIN_CHARACTERS:
                self._whole_lines.add(probe)
            else:
                self._by_start.setdefault(probe[:MIN_CHARACTERS], []).append(probe)
                self._longest = max(self._longest, len(probe))

    def read(self, lines: Iterable[str]) -> None:
        """Search normalized lines."""
        before = ""
        for line in lines:
            if line in self._whole_lines:
                self.found.add(line)
            text = f"{before} {line}" if before else line
            self._search(text)
            before = text[max(0, len(text) - self._longest + 1) :]

    def _search(self, text: str) -> None:
        by_start = self._by_start
        for start in range(len(text) - MIN_CHARACTERS + 1):
            probes = by_start.get(text[start : start + MIN_CHARACTERS])
            if probes is not None:
                self.found.update(probe for probe in probes if text.startswith(probe, start))


def plain(text: str) -> str:
    """Return a text normalized, with single spaces."""
    return " ".join(normalize(text, "plain-1").split())


def probes_of(text: str, num_characters: int) -> list[str]:
    """Cut a text into probes; an empty one has none."""
    if len(text) < num_characters:
        return [text] if text else []
    last = len(text) - num_characters
    return [text[start : start + num_characters] for start in range(0, last + 1, num_characters)]


def texts_of(task: str, path: Path, units: Sequence[Any]) -> list[str]:
    """Return the text of each unit of a data file."""
    if task == "qa":
        return [plain(unit["paragraphs"][0]["context"]) for unit in units]
    names = (NliTask if task == "nli" else SentimentTask).text_fields[0]
    name = first_named(read_records(path), names)
    return [plain(record.text(name)) for record in read_records(path)]


def measure(
    corpus: Sequence[str], task: str, data: Path, *, num_characters: int = 60,
    rest: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Count what the corpus has of a data file, and write the examples that it has nothing of."""
    if not set(TASKS[task]) & set(data.suffixes):
        raise InputError(f"{data}: give data of {task} that end in {' or '.join(TASKS[task])}.")
    if rest is not None:
        check_target(rest, inputs=[data], overwrite=True)
    divided = paragraphs_of(data) if task == "qa" else records_of(data)
    texts = texts_of(task, data, divided.units)
    by_text = {text: probes_of(text, num_characters) for text in texts}
    search = ProbeSearch(probe for probes in by_text.values() for probe in probes)
    counts = {"lines": 0, "characters": 0}
    search.read(_lines(corpus, counts))
    found = {text for text, probes in by_text.items() if not search.found.isdisjoint(probes)}
    probes = {probe for own in by_text.values() for probe in own}
    pairs = list(zip(divided.units, texts, strict=True))
    if rest is not None:
        with atomic_file(rest) as temp_path:
            kept = [unit for unit, text in pairs if text not in found]
            temp_path.write_text(divided.join(kept), encoding="utf-8")
    short = [text for text in by_text if len(text) < num_characters]
    return {
        "examples": sum(divided.size(unit) for unit, _ in pairs),
        "examples_found": sum(divided.size(unit) for unit, text in pairs if text in found),
        "texts": len(by_text), "texts_found": len(found),
        "short_texts": len(short), "short_texts_found": len(found.intersection(short)),
        "probes": len(probes), "probes_found": len(search.found),
        "corpus": counts,
    }  # fmt: skip


def _lines(corpus: Sequence[str], counts: dict[str, int]) -> Iterator[str]:
    for line in read_text_lines(find_files(corpus), ReadReport()):
        text = plain(line.text)
        counts["lines"] += 1
        counts["characters"] += len(text)
        yield text


def main() -> None:
    """Measure as the command line says, and print the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--task", choices=sorted(TASKS), required=True)
    parser.add_argument("--data", type=Path, required=True, metavar="FILE")
    parser.add_argument("--characters", type=int, default=60, metavar="N")
    parser.add_argument("--write-rest", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.characters < MIN_CHARACTERS:
        parser.error(f"--characters must be at least {MIN_CHARACTERS}, got {given.characters}.")
    results = measure(
        given.corpus, given.task, given.data,
        num_characters=given.characters, rest=given.write_rest,
    )  # fmt: skip
    print_result("overlap", {"characters": given.characters}, results)


if __name__ == "__main__":
    with exit_on_user_error():
        main()
