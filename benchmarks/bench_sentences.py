"""Sentence ends in other languages: the tokenizer `simple` beside spaCy's blank pipeline.

    python benchmarks/bench_sentences.py de.txt --language de

The file holds one sentence a line. Five lines at a time are joined into a paragraph, in an order of
the seed. F1 counts the ends between them, in characters without spaces. spaCy's blank pipeline is
its tokenizer of that language with the `sentencizer`. Prints one JSON object.
"""

import random
from collections.abc import Callable, Iterable
from itertools import accumulate
from pathlib import Path

import spacy
from common import new_parser, print_result

from elmokit.text.tokenizers.simple import SimpleTokenizer

PER_PARAGRAPH = 5


def ends(sentences: Iterable[str]) -> set[int]:
    """Return how many characters other than spaces stand before each end but the last."""
    return set(list(accumulate(len("".join(sentence.split())) for sentence in sentences))[:-1])


def f1(paragraphs: list[list[str]], split: Callable[[str], list[str]]) -> dict[str, float]:
    right = guessed = gold = 0
    for sentences in paragraphs:
        expected, answer = ends(sentences), ends(split(" ".join(sentences)))
        right += len(expected & answer)
        guessed, gold = guessed + len(answer), gold + len(expected)
    return {
        "f1": round(200 * right / (guessed + gold), 2),
        "precision": round(100 * right / guessed, 2),
        "recall": round(100 * right / gold, 2),
    }


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--language", required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    lines = arguments.file.read_text(encoding="utf-8").splitlines()
    random.Random(arguments.seed).shuffle(lines)
    paragraphs = [lines[k : k + PER_PARAGRAPH] for k in range(0, len(lines), PER_PARAGRAPH)]
    simple = SimpleTokenizer(arguments.language)
    blank = spacy.blank(arguments.language)
    blank.add_pipe("sentencizer")
    print_result(
        "sentences",
        {"lines": len(lines), "language": arguments.language},
        {
            "simple": f1(paragraphs, lambda text: ["".join(s) for s in simple.sentences(text)]),
            "spacy_blank": f1(paragraphs, lambda text: [s.text for s in blank(text).sents]),
        },
    )


if __name__ == "__main__":
    main()
