"""Raw text to entities with the packaged tagger `ner-en`: words a second, by precision.

    python benchmarks/bench_entities.py [--text wiki.txt] [--threads 2] [--repeats 5]

The precisions take turns in one process, each loaded anew for a run, so that no word is known
before; loading is outside the clock. Words are what stands between spaces. ``cpu_seconds`` is the
processor time of all threads, which says more than the clock while other programs run. Without a
text it is the English one of `elmokit demo`. ``changed_tags`` is the share of the tokens that are
tagged otherwise than in fp32.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from common import Spread, alternate, print_result, throughputs
from inputs import read_text, text_metadata

import elmokit
from elmokit.kernels.threads import set_num_threads

PRECISIONS = ("fp32", "bf16", "int8")


class Tagging:
    """Tags a text in one precision, and keeps processor times and tags."""

    def __init__(self, precision: str, lines: list[str]) -> None:
        self._precision, self._lines = precision, lines
        self.cpu_seconds: list[float] = []
        self.tags: list[str] = []

    def __call__(self) -> float:
        """Return the seconds of a run with a tagger that has read nothing yet."""
        tagger = elmokit.TaskRun.load("ner-en", precision=self._precision)
        started, cpu = time.perf_counter(), time.process_time()
        answers = list(tagger.predict(self._lines))
        seconds = time.perf_counter() - started
        self.cpu_seconds.append(time.process_time() - cpu)
        self.tags = [tag for _, tags in answers for tag in tags]
        return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=["fp32", "int8"])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    set_num_threads(options.threads)
    sentences = read_text(options.text)
    lines = [" ".join(words) for words in sentences]
    taggings = {precision: Tagging(precision, lines) for precision in options.precisions}
    seconds = alternate(taggings, repeats=options.repeats)
    speeds = throughputs(seconds, sum(map(len, sentences)))
    tags = {precision: tagging.tags for precision, tagging in taggings.items()}
    results: dict[str, Any] = {
        precision: {
            "words_per_second": speeds[precision],
            "cpu_seconds": vars(Spread.of(tagging.cpu_seconds[-options.repeats :])),
        }
        for precision, tagging in taggings.items()
    }
    if "fp32" in tags:
        for precision, others in tags.items():
            pairs = zip(tags["fp32"], others, strict=True)
            results[precision]["changed_tags"] = sum(a != b for a, b in pairs) / len(others)
    sizes = {"threads": options.threads, **text_metadata(sentences, options.text)}
    print_result("entities", sizes, results)


if __name__ == "__main__":
    main()
