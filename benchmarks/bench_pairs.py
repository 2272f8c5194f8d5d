"""Time of `elmokit pairs` on generated pairs.

    python benchmarks/bench_pairs.py --pairs 67000 --threads 2

A pair is a sentence of 6 to 10 words drawn from the 3,000 most frequent of the model, and the same
with another word at a place drawn at random: two sentences of a pair share what is before and after
it, but different pairs little more than a first or last word (in published pairs they often have
more in common). Prints one JSON object; processor seconds count all threads.
"""

import random
import time

from common import new_parser, print_result

from elmokit.evaluation.pairs import Pair, score_pairs
from elmokit.evaluation.text_scorer import open_scorer
from elmokit.kernels.library import set_num_threads


def generate(words: list[str], count: int, draw: random.Random) -> list[Pair]:
    pairs = []
    while len(pairs) < count:
        good = draw.choices(words, k=draw.randint(6, 10))
        bad = good.copy()
        bad[draw.randrange(len(bad))] = draw.choice(words)
        if good != bad:
            pairs.append(Pair(good=" ".join([*good, "."]), bad=" ".join([*bad, "."])))
    return pairs


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--model", default="en")
    parser.add_argument("--pairs", type=int, default=67_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", default="fp32")
    arguments = parser.parse_args()
    set_num_threads(arguments.threads)
    scorer, tokenizer = open_scorer(arguments.model, precision=arguments.precision)
    words = [word for word in scorer.vocab.words[:3000] if word.isalpha() and word.isascii()]
    pairs = generate(words, arguments.pairs, random.Random(0))
    started, used = time.perf_counter(), time.process_time()
    score_pairs(scorer, tokenizer, pairs)
    seconds, used = time.perf_counter() - started, time.process_time() - used
    result = {"seconds": round(seconds, 1), "processor_seconds": round(used, 1)}
    result["pairs_per_second"] = round(len(pairs) / seconds, 1)
    print_result("pairs", vars(arguments), result)


if __name__ == "__main__":
    main()
