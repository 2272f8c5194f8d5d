"""Join annotated names of several corpora into one training file for `ner`.

    python recipes/annotated_names.py names.conll DIR…

Reads the dev… and the train… file of each directory: words and IOB2 tags in columns. Types are
mapped to PER, LOC and ORG; others become O, and so do names in @mentions and #hashtags.
"""

import argparse
from itertools import product, starmap
from pathlib import Path

from elmokit.metrics.task_scores import read_spans, write_tags
from elmokit.tasks.formats.conll import read_columns
from elmokit.tasks.formats.data_files import find_split

TYPES = {
    "PER": "PER", "LOC": "LOC", "ORG": "ORG",
    "person": "PER", "location": "LOC", "corporation": "ORG", "group": "ORG",
}  # fmt: skip
"""Types of the Broad Twitter Corpus and WikiGold, then of WNUT-17."""
SIGNS = ("@", "#")


def common_tags(tokens: tuple[str, ...], tags: tuple[str, ...]) -> list[str]:
    """Return the IOB2 tags of the names that are kept, with their common types."""
    names = []
    for label, start, end in read_spans(tags):
        before = tokens[start - 1] if start else ""  # the sign may be a token of its own
        is_mention_or_hashtag = tokens[start].startswith(SIGNS) or before in SIGNS
        if label in TYPES and not is_mention_or_hashtag:
            names.append((TYPES[label], start, end))
    return write_tags(names, len(tokens), scheme="iob2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR")
    options = parser.parse_args()
    sentences = []
    for path in starmap(find_split, product(options.directories, ("dev", "train"))):
        for sentence in read_columns(path):
            tags = common_tags(sentence.tokens, sentence.tags)
            rows = zip(sentence.tokens, tags, strict=True)
            sentences.append("".join(f"{token}\t{tag}\n" for token, tag in rows) + "\n")
    options.output.write_text("".join(sentences), "utf-8")
    print(f"{options.output}: {len(sentences):,} sentences")


if __name__ == "__main__":
    main()
