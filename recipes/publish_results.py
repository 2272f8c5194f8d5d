"""Put finished experiments into the documentation: their pages, and the tables of scores.

    python recipes/publish_results.py experiments

EXPERIMENTS is the folder that `elmokit experiment NAME -o experiments/NAME` wrote to. The tables
stand between marks (`<!-- scores en: begin -->`) in the pages of DOCUMENTS; a test holds them equal
to docs/results/experiments/*.json. Then recipes/publish_cards.py does the cards of the packaged
models.
"""

import argparse
import re
from pathlib import Path

from published_scores import (
    PAGES,
    ROOT,
    SOURCES,
    conditions_table,
    counts_text,
    notes_on,
    read_published,
    scores_table,
    shipped_hash,
)

from elmokit.cli.error_messages import exit_on_user_error
from elmokit.errors import FormatError
from elmokit.experiments.definitions import EXPERIMENTS
from elmokit.experiments.report import PLOT_FILE, RESULTS_FILE, TABLE_FILE
from elmokit.files.atomic import atomic_file

VARIANTS = {"table1_finetuned": "with a biLM fine-tuned on the text of the task"}
"""Experiments with another biLM, by the name of their page, and what its title adds."""
NAMES = (*EXPERIMENTS, *VARIANTS)
CONDITION_TABLES = ("table2", "table3", "controls")
"""Whose conditions stand side by side where a document has the marks."""
DOCUMENTS = {
    "README.md": "en",
    "docs/results/experiments.md": "en",
    "README.ko.md": "ko",
    "docs/ko/results/index.md": "ko",
}
"""With tables of scores, and what they are written in."""
FOREIGN_PATH = re.compile(r"[\s\"'`=(\[:,](?:/[\w.-]+/[\w.-]|~/)")
"""Absolute paths; a slash within words or before one is none."""


def publish_pages(folder: Path) -> list[str]:
    """Copy what the experiments wrote; return the names of those that there are.

    Raises:
        FileNotFoundError: if there is none.
        FormatError: if a page names places of the machine it was made on; none is copied then.
    """
    found = [name for name in NAMES if (folder / name / TABLE_FILE).is_file()]
    if not found:
        raise FileNotFoundError(
            f"{folder} has no experiment: expected {', '.join(EXPERIMENTS)}, each a folder with "
            f"{TABLE_FILE}, as `elmokit experiment NAME -o {folder}/NAME` writes it."
        )
    texts: dict[Path, str] = {}
    for name in found:
        title, rest = (folder / name / TABLE_FILE).read_text(encoding="utf-8").split("\n", 1)
        if name in VARIANTS:
            title += f", {VARIANTS[name]}"
        if (folder / name / PLOT_FILE).is_file():
            rest = f"\n![{title.lstrip('# ')}]({name}.png)\n{rest}"
        texts[PAGES / f"{name}.md"] = f"{title}\n{rest}"
        texts[PAGES / f"{name}.json"] = (folder / name / RESULTS_FILE).read_text(encoding="utf-8")
    for path, text in texts.items():
        if place := FOREIGN_PATH.search(text):
            raise FormatError(
                f"{path.name} has a place of this machine ({text[place.start() :][:60]!r}). Run "
                "the experiment with relative paths, in a folder that holds its data."
            )
    for path, text in texts.items():
        write_text(path, text.encode())
    for name in found:
        plot = folder / name / PLOT_FILE
        if plot.is_file():
            write_text(PAGES / f"{name}.png", plot.read_bytes())
        else:
            (PAGES / f"{name}.png").unlink(missing_ok=True)
    return found


def with_scores(document: str) -> str:
    """Return a document's text with the tables of the results that are published.

    Raises:
        FormatError: if it lacks the marks.
    """
    text = (ROOT / document).read_text(encoding="utf-8")
    for name in CONDITION_TABLES:
        if f"<!-- scores {name}: begin -->" in text:
            text = between(
                text, f"scores {name}", f"\n{conditions_table(read_published(name))}\n", document
            )
    for language, name in SOURCES.items():
        results = read_published(name)
        table = scores_table(results, language, DOCUMENTS[document])
        note = notes_on(results, shipped_hash(language), DOCUMENTS[document])
        text = between(text, f"scores {language}", f"\n{table}\n{note}", document)
        if f"<!-- counts {language}: begin -->" in text:
            text = between(text, f"counts {language}", counts_text(results), document)
    return text


def between(text: str, mark: str, content: str, document: str) -> str:
    """Return a document's text with other content between two marks."""
    begin, end = (f"<!-- {mark}: {edge} -->" for edge in ("begin", "end"))
    if not (begin in text and end in text):
        raise FormatError(f"{document} lacks {begin} … {end}, where the results belong.")
    return f"{text.split(begin)[0]}{begin}{content}{end}{text.split(end)[1]}"


def write_text(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with atomic_file(path) as file:
        file.write_bytes(content)


def main() -> None:
    """Parse, write, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiments", type=Path, help="folder with a folder for each experiment")
    options = parser.parse_args()
    found = publish_pages(options.experiments)
    print(f"published: {', '.join(found)}")
    if len(found) < len(NAMES):
        print(f"not there: {', '.join(name for name in NAMES if name not in found)}")
    for document in DOCUMENTS:
        write_text(ROOT / document, with_scores(document).encode())
        print(document)


if __name__ == "__main__":
    with exit_on_user_error():
        main()
