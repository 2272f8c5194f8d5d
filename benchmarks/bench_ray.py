"""How much faster two Ray actors on this machine embed than one process with one thread.

    python benchmarks/bench_ray.py --text wiki.txt [--model en] [--words 100000] [--actors 2]
        [--layers average | --pool mean]

Both write the same text to a file, in turns, and the files must be equal. ``times one process`` is
by the clock, which says something only if as many cores are free as there are actors;
``by processor time`` is what such a machine could reach at best: seconds of the one process, times
actors, over those of actors and driver together.
"""

import argparse
import filecmp
import os
import tempfile
import time
from pathlib import Path

from common import Spread, alternate, print_result, speed_ratio


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", type=Path, required=True, help="a sentence a line")
    parser.add_argument("--model", default="en")
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--layers", help="what is written of each word")
    parser.add_argument("--pool", help="write a vector a sentence instead: mean, max")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    import ray
    import torch

    from elmokit.embed.embedder import Embedder
    from elmokit.embed.job import embed_lines
    from elmokit.embed.line_embedder import OwnLines
    from elmokit.embed.options import EmbedOptions
    from elmokit.integrations.ray_data import RayLines

    torch.set_num_threads(1)
    options = EmbedOptions(overwrite=True, layers=given.layers, pool=given.pool)
    processor: dict[str, list[float]] = {"one process": [], "driver": [], "actors": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = folder / "text.txt"
        num_words = write_words(given.text, text, given.words)
        own = OwnLines(Embedder.load(given.model, precision=given.precision), options)
        with RayLines(
            given.model, options, precision=given.precision, num_actors=given.actors
        ) as lines:
            lines.metadata()  # the actors have started

            def of_actors() -> float:
                asked = [
                    actor.__ray_call__.remote(lambda _: time.process_time())
                    for actor in lines.pool.actors
                ]
                return sum(ray.get(asked))

            def one() -> float:
                begun = time.process_time()
                seconds = embed_lines(own, text, folder / "one.h5", options).seconds
                processor["one process"].append(time.process_time() - begun)
                return seconds

            def many() -> float:
                begun, before = time.process_time(), of_actors()
                seconds = embed_lines(lines, text, folder / "many.h5", options).seconds
                processor["driver"].append(time.process_time() - begun)
                processor["actors"].append(of_actors() - before)
                return seconds

            seconds = alternate({"one": one, "many": many}, repeats=given.repeats)
        if not filecmp.cmp(folder / "one.h5", folder / "many.h5", shallow=False):
            raise AssertionError("the files differ")
    counted = {name: values[1:] for name, values in processor.items()}  # without the warm-up
    by_processor = [
        given.actors * alone / (driver + actors)
        for alone, driver, actors in zip(*counted.values(), strict=True)
    ]
    results = {
        "times one process": vars(speed_ratio(seconds["many"], seconds["one"])),
        "by processor time": vars(Spread.of(by_processor)),
        "seconds": {name: Spread.of(taken).median for name, taken in seconds.items()},
        "processor seconds": {name: Spread.of(taken).median for name, taken in counted.items()},
        "files": "equal",
    }
    sizes = {**vars(given), "text": given.text.name, "words": num_words}
    print_result("ray", {**sizes, "load": os.getloadavg()}, results)


def write_words(source: Path, target: Path, words: int) -> int:
    """Copy lines until they have so many words; return how many they have."""
    total = 0
    with source.open(encoding="utf-8") as lines, target.open("w", encoding="utf-8") as out:
        for line in lines:
            if total >= words:
                break
            out.write(line)
            total += len(line.split())
    return total


if __name__ == "__main__":
    main()
