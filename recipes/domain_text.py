"""Text of other registers for pre-training: the sentences of task data, without labels.

    python recipes/domain_text.py DATA --dev wiki/dev.txt.xz -o domain.txt
    python recipes/domain_text.py DATA --language ko --dev ko-wiki/dev.txt.xz reviews/dev.txt.xz \
        --without held-out.conllu -o domain-ko.txt

Reads the training files of DATA's folders (questions, web pages, captions, abstracts, tweets);
dev files never, and no text that shares eight words in a row with ``--dev``, since Wikipedia is
where questions are asked about. A paragraph a line, a blank line between folders.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from elmokit.files.atomic import atomic_file
from elmokit.files.lines import numbered_lines
from elmokit.tasks.formats.conll import read_blocks
from elmokit.tasks.formats.data_files import find_split, read_records
from elmokit.tasks.qa import paragraphs_of

NLI, STS = ("premise", "hypothesis"), ("sentence1", "sentence2")
FOLDERS: dict[str, dict[str, tuple[str, ...]]] = {
    "en": {
        "squad-v1.1": (),
        "nli-snli-sample": NLI,
        "nli-mnli-sample": NLI,
        "nli-cf-snli": NLI,
        "sts-stsb-en": STS,
        "cls-en-scicite": ("text",),
        "ud-en-ewt": (),
        "ner-en-btc": (),
        "ner-en-wnut17": (),
    },
    "ko": {
        "nli-klue-ko": NLI,
        "sts-korsts-ko": STS,
        "kobest-boolq-ko": ("Text", "Question"),
        "kobest-copa-ko": ("sentence", "1", "2"),
        "kobest-hellaswag-ko": ("context",),
        "kobest-sentineg-ko": ("Text",),
        "ud-ko-gsd": (),
        "ud-ko-kaist": (),
    },
}
"""Folders, and the fields of JSON lines and tables that hold text. Left out is data whose licence
forbids commercial use or changes, because what is trained on it might inherit that."""
SENTENCE = "# text = "


def texts(data: Path, language: str) -> Iterator[str]:
    """Yield the paragraphs, each once, with an empty one after each folder."""
    for folder, fields in FOLDERS[language].items():
        source = find_split(data / folder, "train")
        if folder.startswith("squad"):
            for unit in paragraphs_of(source).units:
                (paragraph,) = unit["paragraphs"]
                yield paragraph["context"]
                yield from (question["question"] for question in paragraph["qas"])
        elif folder.startswith("ud-"):
            yield from sentences(source)
        elif folder.startswith("ner-"):  # a token a line; only their own spaces are known
            for rows in read_blocks(source):
                yield " ".join(row.fields[0] for row in rows)
        else:
            seen = set[str]()
            for record in read_records(source):
                new = {record.fields[field] for field in fields} - seen
                yield from sorted(new)
                seen |= new
        yield ""


def runs(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[start : start + 8]) for start in range(len(words) - 7)}


def sentences(treebank: Path) -> Iterator[str]:
    for _, line in numbered_lines(treebank):
        if line.startswith(SENTENCE):
            yield line.removeprefix(SENTENCE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--language", choices=list(FOLDERS), default="en")
    parser.add_argument("--dev", type=Path, nargs="*", default=[], help="text to compare with")
    parser.add_argument("--without", type=Path, help="treebank whose sentences are left out")
    options = parser.parse_args()
    held_out = set(sentences(options.without)) if options.without else set[str]()
    dev = {run for path in options.dev for _, line in numbered_lines(path) for run in runs(line)}
    words = left_out = 0
    with atomic_file(options.output) as path, path.open("w", encoding="utf-8") as file:
        for text in texts(options.data, options.language):
            if text in held_out or runs(text) & dev:
                left_out += 1
                continue
            one_line = text.split()
            words += len(one_line)
            file.write(" ".join(one_line) + "\n")
    print(f"{words:,} words; {left_out:,} texts were left out")


if __name__ == "__main__":
    main()
