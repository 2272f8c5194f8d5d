"""Data sets of a few sentences, in the folders that the experiments look for."""

import json
import random

import torch

from elmokit.experiments.definitions import TASKS, find_experiment

NER, SRL, SENTIMENT, NLI, QA, COREF = (
    TASKS[name] for name in ("ner", "srl", "sentiment", "nli", "qa", "coref")
)
NAMES, PLACES = ["Minji", "Tom", "Ada", "Bo"], ["Oslo", "Seoul", "Rome"]
WORDS = [
    *NAMES, *PLACES, "lives", "in", "plays", "play", "a", "not", "Where", "does", "live", ".", "?",
]  # fmt: skip


def write_data(folder, *, num_train=24, num_dev=12):
    """Write all data sets of the English experiments; return the folder."""
    _write_splits(folder, {"train": num_train, "dev": num_dev}, random.Random(0))
    _write_senses(folder / "wsd-en")
    return folder


def _write_splits(folder, sizes, draw):
    for split, count in sizes.items():
        people = [(draw.choice(NAMES), draw.choice(PLACES)) for _ in range(count)]
        _write(folder / NER.dataset / f"{split}.conll", "\n".join(map(_entities, people)))
        _write(folder / SRL.dataset / f"{split}.jsonl", "".join(map(_roles, people)))
        trees = [
            f"(4 (2 {name}) (4 (3 plays) (2 .)))" if draw.random() < 0.5
            else f"(0 (2 {place}) (0 (1 not) (2 .)))"
            for name, place in people
        ]  # fmt: skip
        _write(folder / SENTIMENT.dataset / f"{split}.txt", "".join(f"{t}\n" for t in trees))
        _write(folder / NLI.dataset / f"{split}.jsonl", "".join(_pair(p, draw) for p in people))
        document = {"version": "1.1", "data": [{"title": "t", "paragraphs": [
            _paragraph(number, person) for number, person in enumerate(people)
        ]}]}  # fmt: skip
        _write(folder / QA.dataset / f"{split}.json", json.dumps(document))
        _write(folder / COREF.dataset / f"{split}.conll", "".join(
            _document(number, person) for number, person in enumerate(people[:4])
        ))  # fmt: skip
        tagged = folder / find_experiment("table6").probe.dataset / f"en-ud-{split}.conllu"
        _write(tagged, "".join(map(_tags, people)))


def write_vectors(path):
    """Write static vectors of all words; return the path."""
    values = torch.randn(len(WORDS), 6, generator=torch.Generator().manual_seed(1))
    rows = (" ".join(f"{x:.4f}" for x in row) for row in values.tolist())
    lines = [f"{word} {row}\n" for word, row in zip(WORDS, rows, strict=True)]
    _write(path, "".join(lines))
    return path


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _entities(person):
    name, place = person
    return f"{name}\tB-PER\nlives\tO\nin\tO\n{place}\tB-LOC\n.\tO\n"


def _roles(person):
    name, place = person
    record = {
        "id": name, "tokens": [name, "lives", "in", place, "."],
        "pos": ["NNP", "VBZ", "IN", "NNP", "."],
        "predicates": [
            {"index": 1, "tags": ["B-ARG0", "B-V", "B-ARGM-LOC", "I-ARGM-LOC", "O"]},
            {"index": 3, "tags": ["O", "O", "O", "B-V", "O"]},
        ],
    }  # fmt: skip
    return json.dumps(record) + "\n"


def _pair(person, draw):
    name, place = person
    label = draw.choice(["entailment", "contradiction"])
    middle = "" if label == "entailment" else "not "
    pair = {"premise": f"{name} lives in {place} .", "label": label}
    return json.dumps(pair | {"hypothesis": f"{name} lives {middle}in {place} ."}) + "\n"


def _paragraph(number, person):
    name, place = person
    context = f"{name} lives in {place} ."
    answer = {"text": place, "answer_start": context.index(place)}
    question = {"id": str(number), "question": f"Where does {name} live ?", "answers": [answer]}
    return {"context": context, "qas": [question]}


def _document(number, person):
    name, place = person
    words = [name, "lives", "in", place, name, "."]
    marks = ["(0)" if word == name else "-" for word in words]
    rows = [f"d{number}\t0\t{n}\t{words[n]}\t{marks[n]}\n" for n in range(len(words))]
    return f"#begin document (d{number}); part 0\n{''.join(rows)}\n#end document\n"


def _tags(person):
    name, place = person
    words = [(name, "PROPN"), ("lives", "VERB"), ("in", "ADP"), (place, "PROPN"), (".", "PUNCT")]
    rows = [f"{n}\t{w}\t_\t{tag}" + "\t_" * 6 + "\n" for n, (w, tag) in enumerate(words, 1)]
    return "".join(rows) + "\n"


def _write_senses(folder):
    """Documents in which ``play`` is a drama in a town, and a game elsewhere."""
    for name, count in (("semcor", 12), ("tiny2020", 4)):
        sentences, keys = [], []
        for number in range(count):
            sense = "drama" if number % 2 else "game"
            other = PLACES[number % 3] if number % 2 else NAMES[number % 4]
            key = f"d.s{number}.t0"
            sentences.append(
                f'<sentence id="d.s{number}">\n<wf lemma="a" pos="DET">a</wf>\n'
                f'<instance id="{key}" lemma="play" pos="NOUN">play</instance>\n'
                f'<wf lemma="in" pos="ADP">in</wf>\n<wf lemma="{other}" pos="NOUN">{other}</wf>\n'
                "</sentence>\n"
            )
            keys.append(f"{key} {sense}\n")
        texts = [
            f'<text id="d{first}">\n{"".join(sentences[first : first + 4])}</text>\n'
            for first in range(0, count, 4)
        ]
        _write(folder / f"{name}.data.xml", f'<corpus lang="en">\n{"".join(texts)}</corpus>\n')
        _write(folder / f"{name}.gold.key.txt", "".join(keys))
    lines = ["lemma\tpos\trank\tsense_key\tsynset\tgloss\n"]
    lines += [f"play\tn\t{n}\t{sense}\ts{n}\tg\n" for n, sense in ((1, "game"), (2, "drama"))]
    _write(folder / "oewn-senses.tsv", "".join(lines))
