"""Which texts of a data set are in the text that a model was pre-trained on, at least in part.

    python benchmarks/overlap.py texts.txt wiki/*.txt.xz [--characters 60] > found.txt

``texts.txt`` has a text a line, such as the premises of a data set. Each is cut into snippets of
``--characters``; one that is shorter as a whole is left out. Prints the numbers, from 1, of the
texts of which a line of the corpus has a snippet, and counts them on stderr. Both sides are
compared as our models read them, normalized by ``plain-1``, with single spaces. The corpus is read
once, line by line; only the data is in memory.
"""

import sys
from collections import defaultdict
from pathlib import Path

from common import new_parser

from elmokit.corpus.readers import ReadReport, read_text_lines
from elmokit.files.sources import find_files
from elmokit.text.normalization import normalize


def plain(text: str) -> str:
    """Return a text normalized, with single spaces."""
    return " ".join(normalize(text, "plain-1").split())


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("corpus", nargs="+")
    parser.add_argument("--characters", type=int, default=60)
    options = parser.parse_args()
    size = options.characters
    numbers: dict[str, set[int]] = defaultdict(set)
    texts = options.texts.read_text(encoding="utf-8").split("\n")
    for number, text in enumerate(map(plain, texts), start=1):
        for start in range(0, len(text) - size + 1, size):
            numbers[text[start : start + size]].add(number)
    compared, repeated = set[int]().union(*numbers.values()), set[int]()
    for line in read_text_lines(find_files(options.corpus), ReadReport()):
        text = plain(line.text)
        for start in range(len(text) - size + 1):
            repeated |= numbers.get(text[start : start + size], set())
    for number in sorted(repeated):
        print(number)
    print(f"{len(repeated):,} of {len(compared):,} texts", file=sys.stderr)


if __name__ == "__main__":
    main()
