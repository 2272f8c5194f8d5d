"""Whether cost grows linearly: throughput by the length of the corpus, and of a sentence.

    python benchmarks/bench_linear.py --preset tiny
    python benchmarks/bench_linear.py --text wiki.txt [--shape small] [--precision fp32] [--write]

One `Embedder.embed_stream` over 10,000, 100,000 and 1,000,000 words, without the word cache, which
makes the longer ones cheaper; the longest with it, too. One sentence of 100,000 words against as
many words in sentences of 100, one a call. Every run reads its text from the start with a new
Embedder; runs take turns. A text that is too short is read over and over: the output says how
often.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from common import Spread, alternate, describe, markdown_page, markdown_table, write_page
from shapes import CACHE_DIR, SHAPES, model_folder
from texts import Sentence, num_tokens, read_text, take_words, text_metadata

from elmokit import Embedder

CACHED, LONG, SHORT = "with the word cache", "one sentence", "sentences of 100, one a call"
SHORT_WORDS = 100


@dataclass(frozen=True)
class Plan:
    """Sizes of a preset."""

    corpora: tuple[int, ...]
    long_sentence: int


PLANS = {
    "tiny": Plan((300, 900), 500),
    "full": Plan((10_000, 100_000, 1_000_000), 100_000),
}


def make_texts(text: Sequence[Sentence], plan: Plan) -> dict[str, list[list[Sentence]]]:
    """Return the texts to embed by their names, as the sentences of each call."""
    texts = {f"{words:,} words": [take_words(text, words)] for words in plan.corpora}
    texts[f"{plan.corpora[-1]:,} words {CACHED}"] = [take_words(text, plan.corpora[-1])]
    stream = [word for sentence in take_words(text, plan.long_sentence) for word in sentence]
    texts[LONG] = [[stream]]
    texts[SHORT] = [[stream[i : i + SHORT_WORDS]] for i in range(0, len(stream), SHORT_WORDS)]
    return texts


def embed_all(
    model: Path, calls: Sequence[Sequence[Sentence]], precision: str, threads: int, *, cache: bool
) -> float:
    """Embed and drop everything; return the seconds, loading not included."""
    embedder = Embedder.load(model, precision=precision, num_threads=threads, word_cache=cache)
    embedder.embed([calls[0][0][:10]])
    gc.collect()
    started = time.perf_counter()
    for sentences in calls:
        for _ in embedder.embed_stream(sentences):
            pass
    return time.perf_counter() - started


def summarize(
    texts: dict[str, list[list[Sentence]]], seconds: dict[str, list[float]]
) -> dict[str, Any]:
    """Return throughputs and how far they are apart."""
    speeds = {
        name: Spread.of([num_tokens(texts[name]) / second for second in times])
        for name, times in seconds.items()
    }
    words = {
        name: sum(len(sentence) for sentences in calls for sentence in sentences)
        for name, calls in texts.items()
    }
    per_word = {
        name: Spread.of([second / words[name] for second in times]).median
        for name, times in seconds.items()
    }
    corpora = [speed.median for name, speed in speeds.items() if name.endswith(" words")]
    return {
        "tokens_per_second": {name: asdict(speed) for name, speed in speeds.items()},
        "corpora_apart": max(corpora) / min(corpora) - 1,
        "long_sentence_cost_per_word": per_word[LONG] / per_word[SHORT],
    }


def page(description: dict[str, Any]) -> str:
    """Return the results as a Markdown page."""
    sizes, results = description["sizes"], description["results"]
    rows = [
        [name, f"{speed['median']:,.0f}", f"{speed['low']:,.0f}–{speed['high']:,.0f}"]
        for name, speed in results["tokens_per_second"].items()
    ]
    body = (
        f"{sizes['shape']} shape with random weights, {sizes['precision']}, threads: "
        f"{sizes['threads']}, {sizes['repeats']} turns. Text: {sizes['text']['text']}; the longest "
        f"corpus reads it {sizes['times_read']:.1f} times.\n\n"
        f"{markdown_table(['text', 'tokens/s', 'lowest–highest'], rows)}\n"
        f"Corpora without the cache are {results['corpora_apart']:.1%} apart; a word of one long "
        f"sentence costs {results['long_sentence_cost_per_word']:.2f} times one of sentences of "
        f"{SHORT_WORDS} alone.\n"
    )
    return markdown_page("Cost by length", description, body)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", choices=PLANS, default="full")
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument(
        "--text", type=Path, help="tokenized, a sentence a line; default: demo text"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=CACHE_DIR, help="weights")
    parser.add_argument("--write", action="store_true", help="keep the table in results/")
    options = parser.parse_args()
    shape = options.shape or ("tiny" if options.preset == "tiny" else "small")
    plan, text = PLANS[options.preset], read_text(options.text)
    texts = make_texts(text, plan)
    model = model_folder(shape, options.cache) / "model"
    runs: dict[str, Callable[[], float]] = {
        name: partial(
            embed_all, model, calls, options.precision, options.threads,
            cache=name.endswith(CACHED),
        )
        for name, calls in texts.items()
    }  # fmt: skip
    seconds = alternate(runs, repeats=options.repeats, warm_ups=0)
    metadata = text_metadata(text, options.text)
    sizes = {
        "text": metadata,
        "times_read": max(plan.corpora) / sum(map(len, text)),
        "shape": shape,
        "precision": options.precision,
        "threads": options.threads,
        "repeats": options.repeats,
    }
    description = describe("linear", sizes, summarize(texts, seconds))
    print(json.dumps(description, indent=2, ensure_ascii=False))
    if options.write:
        path = write_page(f"linear-{shape}", description, page(description))
        print(f"written: {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
