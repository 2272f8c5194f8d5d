"""What `predict --by-document` gains: F1 of a tagger with and without one type for a name.

    python benchmarks/bench_consistency.py ner-en ner/dev.conll.gz ewt/en_ewt-ud-dev.conllu.xz

The second file says which sentences are in one document (``# newdoc``); the first has the same
sentences, in any order, with the names.
"""

from itertools import groupby
from operator import itemgetter
from pathlib import Path

from common import new_parser

from elmokit.files.lines import numbered_lines
from elmokit.metrics.task_scores import count_spans, f1_of
from elmokit.tasks.runs.task_run import TaskRun


def documents(path: Path) -> dict[tuple[str, ...], int]:
    """Return the number of the document of each sentence of a CoNLL-U file."""
    numbers, words, document = dict[tuple[str, ...], int](), list[str](), 0
    for _, line in numbered_lines(path):
        columns = line.split("\t")
        if line.startswith("# newdoc"):
            document += 1
        elif columns[0].isdigit():
            words.append(columns[1])
        elif not line:
            numbers.setdefault(tuple(words), document)
            words = []
    return numbers


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("tagger")
    parser.add_argument("data", type=Path)
    parser.add_argument("conllu", type=Path)
    options = parser.parse_args()
    run, numbers = TaskRun.load(options.tagger), documents(options.conllu)
    examples = run.task.read(options.data, training=False, tokenize=str.split)
    numbered = [(numbers.get(example.tokens, -i), example) for i, example in enumerate(examples)]
    texts, gold = list[list[str]](), list[list[str]]()
    for _, pairs in groupby(sorted(numbered, key=itemgetter(0)), key=itemgetter(0)):
        for _, example in pairs:
            texts.append(list(example.tokens))
            gold.append(run.task.gold(example))
        texts.append([])  # an empty text ends a document
        gold.append([])
    for by_document in (False, True):
        answers = run.predict(texts, by_document=by_document)
        score = float(f1_of(count_spans([tags for _, tags in answers], gold).rows.sum(axis=0)))
        print(f"{'by document' if by_document else 'each sentence':<16}{score:6.2f}")


if __name__ == "__main__":
    main()
