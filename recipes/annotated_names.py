"""Join annotated names of several corpora into one training file for `ner`.

    python recipes/annotated_names.py names.conll DIR…

Reads the dev… and the train… file of each directory: words and IOB2 tags in columns. Types are
mapped to PER, LOC and ORG; others become O, and so do names in @mentions and #hashtags.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

from elmokit.cli.error_messages import exit_on_user_error
from elmokit.files.atomic import atomic_file, check_target
from elmokit.metrics.span_f1 import read_spans, write_tags
from elmokit.tasks.formats.conll import read_columns
from elmokit.tasks.formats.reading import find_split
from elmokit.wording import counted

TYPES = {
    "PER": "PER", "LOC": "LOC", "ORG": "ORG",
    "person": "PER", "location": "LOC", "corporation": "ORG", "group": "ORG",
}  # fmt: skip
"""Types of the Broad Twitter Corpus and WikiGold, then of WNUT-17."""


def common_tags(tokens: tuple[str, ...], tags: tuple[str, ...]) -> list[str]:
    """Return the IOB2 tags of the names that are kept, with their common types."""
    kept = [
        (TYPES[label], start, end)
        for label, start, end in read_spans(tags)
        if label in TYPES and not is_mention_or_hashtag(tokens, start)
    ]
    return write_tags(kept, len(tokens), scheme="iob2")


def is_mention_or_hashtag(tokens: tuple[str, ...], index: int) -> bool:
    """Tell whether a word is an @mention or a #hashtag; the sign may be a token of its own."""
    return tokens[index].startswith(("@", "#")) or (index > 0 and tokens[index - 1] in ("@", "#"))


def sentences(paths: Iterable[Path]) -> Iterable[str]:
    """Yield sentences as rows."""
    for path in paths:
        for sentence in read_columns(path):
            tags = common_tags(sentence.tokens, sentence.tags)
            rows = zip(sentence.tokens, tags, strict=True)
            yield "".join(f"{token}\t{tag}\n" for token, tag in rows) + "\n"


def main() -> None:
    """Parse, read, write, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path)
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR")
    options = parser.parse_args()
    paths = [
        find_split(directory, split)
        for directory in options.directories
        for split in ("dev", "train")
    ]
    check_target(options.output, inputs=paths, overwrite=True)
    found = list(sentences(paths))
    with atomic_file(options.output) as temp_path:
        temp_path.write_text("".join(found), encoding="utf-8")
    print(f"{options.output}: {counted(len(found), 'sentence')}")


if __name__ == "__main__":
    with exit_on_user_error():
        main()
