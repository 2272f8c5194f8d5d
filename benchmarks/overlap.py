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

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from common import new_parser, print_result

from elmokit.cli.output import exit_on_user_error
from elmokit.corpus.readers import ReadReport, read_text_lines
from elmokit.errors import InputError
from elmokit.files.atomic import atomic_file, check_target
from elmokit.files.sources import find_files
from elmokit.tasks.classification import NliTask, SentimentTask
from elmokit.tasks.formats.reading import first_named, read_records, records_of
from elmokit.tasks.qa import paragraphs_of
from elmokit.text.normalization import normalize

MIN_CHARACTERS = 12
"""Of probes that are looked for inside lines."""
TASKS = {"qa": (".json",), "nli": (".jsonl", ".tsv"), "sentiment": (".jsonl", ".tsv")}
"""Tasks with raw text, and the endings of their files."""


def search(probes: Iterable[str], lines: Iterable[str]) -> set[str]:
    """Return the probes that normalized lines have."""
    found: set[str] = set()
    by_start: dict[str, list[str]] = defaultdict(list)
    whole_lines: set[str] = set()
    for probe in set(probes):
        if len(probe) < MIN_CHARACTERS:
            whole_lines.add(probe)
        else:
            by_start[probe[:MIN_CHARACTERS]].append(probe)
    longest = max((len(probe) for same in by_start.values() for probe in same), default=1)
    before = ""
    for line in lines:
        if line in whole_lines:
            found.add(line)
        text = f"{before} {line}" if before else line
        for start in range(len(text) - MIN_CHARACTERS + 1):
            same = by_start.get(text[start : start + MIN_CHARACTERS], ())
            found.update(probe for probe in same if text.startswith(probe, start))
        before = text[max(0, len(text) - longest + 1) :]  # a probe may cross the end of the line
    return found


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


def read_corpus(corpus: Sequence[str], counts: Counter[str]) -> Iterator[str]:
    for line in read_text_lines(find_files(corpus), ReadReport()):
        text = plain(line.text)
        counts.update(lines=1, characters=len(text))
        yield text


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--corpus", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--task", choices=sorted(TASKS), required=True)
    parser.add_argument("--data", type=Path, required=True, metavar="FILE")
    parser.add_argument("--characters", type=int, default=60, metavar="N")
    parser.add_argument("--write-rest", type=Path, metavar="FILE")
    options = parser.parse_args()
    task, data, num_characters = options.task, options.data, options.characters
    if num_characters < MIN_CHARACTERS:
        parser.error(f"--characters must be at least {MIN_CHARACTERS}, got {num_characters}.")
    if not set(TASKS[task]) & set(data.suffixes):
        raise InputError(f"{data}: give data of {task} that end in {' or '.join(TASKS[task])}.")
    if options.write_rest is not None:
        check_target(options.write_rest, inputs=[data], overwrite=True)
    divided = paragraphs_of(data) if task == "qa" else records_of(data)
    texts = texts_of(task, data, divided.units)
    by_text = {text: set(probes_of(text, num_characters)) for text in texts}
    probes, counts = set[str]().union(*by_text.values()), Counter[str]()
    probes_found = search(probes, read_corpus(options.corpus, counts))
    found = {text for text, own in by_text.items() if own & probes_found}
    pairs = list(zip(divided.units, texts, strict=True))
    if options.write_rest is not None:
        rest = divided.join([unit for unit, text in pairs if text not in found])
        with atomic_file(options.write_rest) as temp_path:
            temp_path.write_text(rest, encoding="utf-8")
    short = {text for text in by_text if len(text) < num_characters}
    results = {
        "examples": sum(divided.size(unit) for unit, _ in pairs),
        "examples_found": sum(divided.size(unit) for unit, text in pairs if text in found),
        "texts": len(by_text), "texts_found": len(found),
        "short_texts": len(short), "short_texts_found": len(found & short),
        "probes": len(probes), "probes_found": len(probes_found),
        "corpus": dict(counts),
    }  # fmt: skip
    print_result("overlap", {"characters": num_characters}, results)


if __name__ == "__main__":
    with exit_on_user_error():
        main()
