import gzip
import json

import pytest

from elmokit.errors import InputError
from elmokit.experiments.definitions import TaskSettings
from elmokit.experiments.inputs import write_run_files
from elmokit.probes.inputs import SplitFiles
from elmokit.tasks.formats.conll import read_columns
from elmokit.tasks.formats.conllu import read_conllu, read_propbank
from elmokit.tasks.registry import find_task


def divided(source, directory, *, task, limit=None, subset="all"):
    settings = TaskSettings(
        task=task, dataset="data", hidden_dims=(1,), epochs=1, max_train=limit,
        subset=subset,
    )  # fmt: skip
    return write_run_files(SplitFiles(train=source, dev=source), directory, settings)


def test_a_tenth_is_held_out_and_a_smaller_sample_is_part_of_a_larger_one(
    write, tmp_path, monkeypatch
):
    every = [(f"w{n}", "x") for n in range(50)]  # sentences stay whole
    text = "\n".join(f"{first}\tO\n{second}\tO\n" for first, second in every)
    source = write(gzip.compress(text.encode()), name="train.conll.gz")
    trains, held_outs = {}, set()
    for limit in (5, 20, None):
        parts = divided(source, tmp_path / str(limit), task="ner", limit=limit)
        assert parts.train.name == "train.conll"
        train, held_out = (
            tuple(sentence.tokens for sentence in read_columns(path))
            for path in (parts.train, parts.held_out)
        )
        assert not set(train) & set(held_out)
        assert list(train) == sorted(train, key=every.index)  # in their own order
        trains[limit] = train
        held_outs.add(held_out)
    (held_out,) = held_outs  # the same for every size
    first = every.index(held_out[0])  # a block: neighbors are of one document
    assert held_out == tuple(every[first : first + 5])
    assert [len(train) for train in trains.values()] == [5, 20, 45]
    assert set(trains[5]) < set(trains[20]) < set(trains[None])
    assert trains[5] != trains[None][:5]
    monkeypatch.setattr("elmokit.experiments.inputs.MAX_HELD_OUT", 2)
    few = divided(source, tmp_path / "few", task="ner")
    assert len(list(read_columns(few.held_out))) == 2


@pytest.mark.parametrize("ending", ["jsonl", "tsv", "txt"])
def test_the_pairs_of_a_premise_stay_together(write, tmp_path, ending):
    pairs = [(f"premise {n % 20}", f"hypothesis {n}") for n in range(60)]
    if ending == "jsonl":
        lines = [json.dumps({"premise": a, "hypothesis": b, "label": "neutral"}) for a, b in pairs]
    else:
        lines = ["premise\thypothesis\tlabel", *(f"{a}\t{b}\tneutral" for a, b in pairs)]
    source = write("".join(f"{line}\n" for line in lines), name=f"train.{ending}")
    parts = divided(source, tmp_path / "out", task="nli")
    task = find_task("nli")
    train, held_out = (
        [example.texts for example in task.read(path, training=False, tokenize=str.split)]
        for path in (parts.train, parts.held_out)
    )
    assert len(held_out) == 6
    assert sorted([*train, *held_out]) == sorted(pairs)
    assert not {premise for premise, _ in train} & {premise for premise, _ in held_out}


@pytest.mark.parametrize("number", [4, 7, 30])
def test_either_part_has_an_example_though_sentences_have_none(write, tmp_path, number):
    verb = [{"index": 1, "tags": ["B-ARG0", "B-V"]}]
    record = {"tokens": ["He", "sat"], "pos": ["PRP", "VBD"]}
    lines = [
        json.dumps(record | {"predicates": [] if n % 3 else verb}) + "\n" for n in range(number)
    ]
    how = {"task": "srl", "subset": "verbs"}
    parts = divided(write("".join(lines), name="train.jsonl"), tmp_path, **how)
    for path in (parts.train, parts.held_out):
        assert list(read_propbank(path))
    with pytest.raises(InputError, match=r"1 of its units \(srl"):
        divided(write("".join(lines[:3]), name="few.jsonl"), tmp_path, **how)


@pytest.mark.parametrize(
    ("name", "unit", "task", "read"),
    [
        ("train.txt", "-DOCSTART- O\n\n# of {n}\n\nRain{n} B-PER\nfalls O\n\n", "ner",
         read_columns),
        ("train.conllu", "#newdoc id=0\n\n1\tRain\train\tNOUN\t_\t_\t0\troot\t_\t_\n\n", "pos",
         read_conllu),
    ],
)  # fmt: skip
@pytest.mark.parametrize("number", [2, 3, 8])
def test_marks_and_comments_are_no_sentences(write, tmp_path, name, unit, task, read, number):
    source = write("".join(unit.format(n=n) for n in range(number)), name=name)
    parts = divided(source, tmp_path / "out", task=task)
    assert [len(list(read(path))) for path in (parts.train, parts.held_out)] == [number - 1, 1]
    assert parts.dev == source
