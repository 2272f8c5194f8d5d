"""Planted lexical change, and none: does `elmokit change` find what is there, and nothing else?

    python benchmarks/bench_change.py corpus.txt --sample 40

The lines of a corpus are dealt into two halves by chance. 200 pseudo-words replace 400 real words,
each two of them (of more than three letters); 20 of the pseudo-words stand for 90 and 10 % of the
occurrences of their two words in A and 10 and 90 % in B, the others for half of both. Prints one
JSON object: average precision at 20 by measure, and the share of the 180 unchanged words with
p < 0.05. Needs the extra `sklearn`.
"""

import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import new_parser, print_result

from elmokit import Embedder
from elmokit.embed.lexical_change import find_changes

NUM_WORDS, NUM_CHANGED, SHARES = 200, 20, (0.9, 0.1)


def plant(halves: Sequence[Sequence[list[str]]], draw: random.Random, least: int) -> list[str]:
    """Put pseudo-words into the lines of both halves, in place; the changed ones come first."""
    counts = [Counter(word for line in half for word in set(line)) for half in halves]
    words = sorted(
        word
        for word, count in counts[0].items()
        if word.isalpha()
        and word.islower()
        and len(word) > 3
        and min(count, counts[1][word]) >= least
    )
    words = draw.sample(words, 2 * NUM_WORDS)
    letters = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    names = draw.sample([a + b + c for a in letters for b in letters for c in letters], NUM_WORDS)
    for side, half in enumerate(halves):
        planted = {}
        for number, name in enumerate(names):
            share = SHARES[side] if number < NUM_CHANGED else 0.5
            planted[words[2 * number]] = name, share
            planted[words[2 * number + 1]] = name, 1 - share
        for line in half:
            for place, word in enumerate(line):
                name, share = planted.get(word, ("", 0.0))
                if draw.random() < share:
                    line[place] = name
    return names


def average_precision(ranking: Sequence[str], relevant: set[str]) -> float:
    hits = np.array([word in relevant for word in ranking[: len(relevant)]])
    precisions = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return round(float((precisions * hits).sum() / len(relevant)), 3)


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--model", default="en")
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", default="fp32")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    tokenize = Embedder.load(arguments.model).tokenizer.tokenize
    texts = arguments.corpus.read_text(encoding="utf-8").splitlines()
    lines = [tokenize(line) for line in texts if line.strip()]
    draw.shuffle(lines)
    halves = lines[::2], lines[1::2]
    names = plant(halves, draw, arguments.sample)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in "ab"]
        for path, half in zip(paths, halves, strict=True):
            path.write_text("\n".join(map(" ".join, half)) + "\n", encoding="utf-8")
        found = find_changes(
            *paths, model=arguments.model, words=names, sample=arguments.sample, min_count=10,
            seed=arguments.seed, precision=arguments.precision,
        )  # fmt: skip
    changed, same = set(names[:NUM_CHANGED]), set(names[NUM_CHANGED:])
    results: dict[str, Any] = {"excess": {}, **{measure: {} for measure in found[0].values}}
    for measure, result in results.items():
        ranking = found
        if measure != "excess":
            ranking = sorted(found, key=lambda one, name=measure: -one.values[name])
            few = [one.p[measure] < 0.05 for one in found if one.word in same]
            result["unchanged_below_0.05"] = round(float(np.mean(few)), 3)
            hits = [one.q[measure] < 0.05 for one in found if one.word in changed]
            result["changed_found_at_q_0.05"] = sum(hits)
        precision = average_precision([one.word for one in ranking], changed)
        result["average_precision"] = precision
    print_result("change", {"lines": len(lines), "sample": arguments.sample}, results)


if __name__ == "__main__":
    main()
