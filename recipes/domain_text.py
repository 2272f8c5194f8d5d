"""Text of other registers for pre-training: the sentences of English task data, without labels.

    python recipes/domain_text.py DATA -o domain.txt

Reads the training files of DATA's folders (questions, web pages, captions, abstracts, tweets);
dev files never. A paragraph a line, a blank line between folders.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import fsspec

from elmokit.files.atomic import atomic_file

PAIRS = ("premise", "hypothesis")
JSON_LINES = {
    "nli-snli-sample": PAIRS,
    "nli-mnli-sample": PAIRS,
    "nli-cf-snli": PAIRS,
    "sts-stsb-en": ("sentence1", "sentence2"),
    "cls-en-scicite": ("text",),
}
"""Folders of JSON lines, and the fields that hold text. Left out are those whose licence forbids
commercial use, because what is trained on them would inherit it."""
TOKENS = ("ner-en-btc", "ner-en-wnut17")
"""Folders with a token a line; only their own spaces are known."""


def texts(data: Path) -> Iterator[str]:
    """Yield the paragraphs, each once, with an empty one after each folder."""
    for article in json.loads("\n".join(lines(data / "squad-v1.1")))["data"]:
        for paragraph in article["paragraphs"]:
            yield paragraph["context"]
            yield from (question["question"] for question in paragraph["qas"])
    yield ""
    for folder, fields in JSON_LINES.items():
        seen = set[str]()
        for line in lines(data / folder):
            record = json.loads(line)
            new = {record[field] for field in fields} - seen
            yield from sorted(new)
            seen |= new
        yield ""
    for line in lines(data / "ud-en-ewt"):
        if line.startswith("# text = "):
            yield line.removeprefix("# text = ")
    for folder in TOKENS:  # a blank line ends a sentence
        yield ""
        for is_word, rows in groupby(lines(data / folder), key=bool):
            if is_word:
                yield " ".join(row.split("\t")[0] for row in rows)
    yield ""


def lines(folder: Path) -> Iterator[str]:
    """Yield the lines of the folder's training file."""
    (path,) = folder.glob("*train*")
    with fsspec.open(str(path), "rt", compression="infer", encoding="utf-8", newline="\n") as file:
        yield from (line.rstrip("\n") for line in file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    words = 0
    with atomic_file(options.output) as path, path.open("w", encoding="utf-8") as file:
        for text in texts(options.data):
            one_line = " ".join(text.split())
            words += len(one_line.split())
            file.write(one_line + "\n")
    print(f"{words:,} words")


if __name__ == "__main__":
    main()
