"""Write the word vectors that an experiment reads, and no others, to a small file.

An experiment reads a few ten thousand words of a file of static vectors that can be a gigabyte. To
run it on a machine where such a file would have to be uploaded, cut out what it reads. Words that
the file lacks get the vectors that fastText makes of their characters, so every number is the same
as with the whole file; only the hash of the file is another, and with it the names of the runs.

    python recipes/excerpt_vectors.py vectors.bin controls --tasks qa --data data -o vectors-qa.bin
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from elmokit.experiments.inputs import find_data
from elmokit.experiments.registry import find_experiment
from elmokit.experiments.samples import divide_training_set, sample_file
from elmokit.experiments.settings import HELD_OUT_SHARE, MAX_HELD_OUT, TaskSettings
from elmokit.probes.data import SplitFiles
from elmokit.tasks.registry import find_task
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.vectors.vector_files import read_vectors, write_vectors
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import load_model


def words_of(
    settings: TaskSettings,
    source: SplitFiles,
    tokenize: Callable[[str], list[str]],
    directory: Path,
) -> set[str]:
    """Return the words of the training sample, the held-out part and the dev set."""
    task = find_task(settings.task).in_units(settings.units)
    parts = divide_training_set(
        source.train, directory / "train", task=settings.task, subset=settings.subset,
        limit=settings.max_train, held_out_share=HELD_OUT_SHARE, max_held_out=MAX_HELD_OUT,
    )  # fmt: skip
    dev = sample_file(
        source.dev, directory / "dev", task=settings.task, subset=settings.subset, limit=None
    )
    words: set[str] = set()
    for path, training in ((parts.train, True), (parts.held_out, False), (dev, False)):
        words.update(task.words(task.read(path, training=training, tokenize=tokenize)))
    return words


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("vectors", type=Path)
    parser.add_argument("experiment", nargs="+", help="of one language")
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=[])
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    words: set[str] = set()
    for name in args.experiment:
        experiment = find_experiment(name)
        model = load_model(find_model(experiment.language))
        tokenizer = NormalizingTokenizer(
            build_tokenizer(model.tokenizer), model.config.char_vocab.normalization
        )
        chosen = [one for one in experiment.tasks if not args.tasks or one.task in args.tasks]
        files = find_data(args.data, chosen)
        for settings in chosen:
            with tempfile.TemporaryDirectory() as directory:
                source = files[settings.dataset]
                words |= words_of(settings, source, tokenizer.tokenize, Path(directory))
    found = read_vectors(args.vectors, only=words)
    write_vectors(args.output, found.words, found.values[2:])
    print(f"{len(words):,} words read, {len(found.words):,} spellings of them written")


if __name__ == "__main__":
    main()
