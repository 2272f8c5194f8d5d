"""What `predict --by-document` gains: F1 of a tagger with and without one type for a name.

    python benchmarks/bench_consistency.py ner-en ner/dev.conll.gz ewt/en_ewt-ud-dev.conllu.xz

The second file says which sentences are in one document (``# newdoc``); the first has the same
sentences, in any order, with the names.
"""

from pathlib import Path

import fsspec
from common import new_parser

from elmokit.metrics.task_scores import count_spans, f1_of
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.tag_search import agreeing


def documents(path: Path) -> dict[tuple[str, ...], int]:
    """Return the number of the document of each sentence of a CoNLL-U file."""
    places, words, document = dict[tuple[str, ...], int](), list[str](), 0
    with fsspec.open(str(path), "rt", compression="infer", encoding="utf-8") as file:
        for line in file:
            columns = line.rstrip("\n").split("\t")
            if line.startswith("# newdoc"):
                document += 1
            elif columns[0].isdigit():
                words.append(columns[1])
            elif line == "\n":
                places.setdefault(tuple(words), document)
                words = []
    return places


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("tagger")
    parser.add_argument("data", type=Path)
    parser.add_argument("conllu", type=Path)
    options = parser.parse_args()
    run, places = TaskRun.load(options.tagger), documents(options.conllu)
    examples = run.task.read(options.data, training=False, tokenize=str.split)
    numbered = [(places.get(example.tokens, -i), example) for i, example in enumerate(examples)]
    numbered.sort(key=lambda pair: pair[0])
    texts, before = list[list[str]](), None
    gold = list[list[str]]()
    for document, example in numbered:
        if document != before:  # an empty text ends a document
            texts.append([])
            gold.append([])
        before = document
        texts.append(list(example.tokens))
        gold.append(run.task.gold(example))
    answers = list(run.predict(texts))
    agreed = agreeing(answers, with_probs=False)
    for name, pairs in (("each sentence", answers), ("by document", agreed)):
        score = float(f1_of(count_spans([tags for _, tags in pairs], gold).rows.sum(axis=0)))
        print(f"{name:<16}{score:6.2f}")


if __name__ == "__main__":
    main()
