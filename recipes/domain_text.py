"""Text of other registers for pre-training: the sentences of English task data, without labels.

    python recipes/domain_text.py DATA -o domain.txt

Reads the training files of DATA's folders (questions, web pages, captions, abstracts, tweets);
dev files never. A paragraph a line, a blank line between folders.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from elmokit.files.atomic import atomic_file
from elmokit.files.lines import numbered_lines
from elmokit.tasks.formats.conll import read_blocks
from elmokit.tasks.formats.reading import find_split, read_records
from elmokit.tasks.qa import paragraphs_of

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
IN_DEV_TEXT = ("London", "Black_people")
"""Articles of SQuAD that are dev articles of the Wikipedia text: left out."""
TOKENS = ("ner-en-btc", "ner-en-wnut17")
"""Folders with a token a line; only their own spaces are known."""


def texts(data: Path) -> Iterator[str]:
    """Yield the paragraphs, each once, with an empty one after each folder."""
    for unit in paragraphs_of(find_split(data / "squad-v1.1", "train")).units:
        if unit["title"] in IN_DEV_TEXT:
            continue
        (paragraph,) = unit["paragraphs"]
        yield paragraph["context"]
        yield from (question["question"] for question in paragraph["qas"])
    yield ""
    for folder, fields in JSON_LINES.items():
        seen = set[str]()
        for record in read_records(find_split(data / folder, "train")):
            new = {record.fields[field] for field in fields} - seen
            yield from sorted(new)
            seen |= new
        yield ""
    for _, line in numbered_lines(find_split(data / "ud-en-ewt", "train")):
        if line.startswith("# text = "):
            yield line.removeprefix("# text = ")
    for folder in TOKENS:
        yield ""
        for rows in read_blocks(find_split(data / folder, "train")):
            yield " ".join(row.fields[0] for row in rows)
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    words = 0
    with atomic_file(options.output) as path, path.open("w", encoding="utf-8") as file:
        for text in texts(options.data):
            one_line = text.split()
            words += len(one_line)
            file.write(" ".join(one_line) + "\n")
    print(f"{words:,} words")


if __name__ == "__main__":
    main()
