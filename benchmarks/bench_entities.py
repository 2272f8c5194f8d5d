"""Raw text to entities with the packaged tagger `ner-en`: words a second, by precision.

    python benchmarks/bench_entities.py [--text wiki.txt] [--threads 2] [--repeats 5]

The precisions take turns in one process, each loaded anew for a run, so that no word is known
before; loading is outside the clock. Words are what stands between spaces. ``cpu_seconds`` is the
processor time of all threads, which says more than the clock while other programs run. Without a
text it is the English one of `elmokit demo`. ``changed_tags`` is the share of the tokens that are
tagged otherwise than in fp32.
"""

import time
from pathlib import Path
from typing import Any

from common import (
    alternate,
    new_parser,
    print_result,
    read_text,
    spread,
    text_metadata,
)

import elmokit
from elmokit.kernels.library import set_num_threads


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "int8"])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    set_num_threads(options.threads)
    sentences = read_text(options.text)
    lines = [" ".join(words) for words in sentences]
    processor: dict[str, list[float]] = {precision: [] for precision in options.precisions}
    tags: dict[str, list[str]] = {}

    def tag(precision: str) -> float:
        tagger = elmokit.TaskRun.load("ner-en", precision=precision)
        started, used = time.perf_counter(), time.process_time()
        answers = list(tagger.predict(lines))
        seconds = time.perf_counter() - started
        processor[precision].append(time.process_time() - used)
        tags[precision] = [tag for _, tags_of_one in answers for tag in tags_of_one]
        return seconds

    seconds = alternate(options.precisions, tag, repeats=options.repeats)
    num_words = sum(map(len, sentences))
    speeds = {name: spread([num_words / one for one in times]) for name, times in seconds.items()}
    results: dict[str, Any] = {
        name: {"words_per_second": speeds[name], "cpu_seconds": spread(processor[name][1:])}
        for name in options.precisions
    }
    for name in tags if "fp32" in tags else ():
        pairs = zip(tags["fp32"], tags[name], strict=True)
        results[name]["changed_tags"] = sum(a != b for a, b in pairs) / len(tags[name])
    sizes = {"threads": options.threads, **text_metadata(sentences, options.text)}
    print_result("entities", sizes, results)


if __name__ == "__main__":
    main()
