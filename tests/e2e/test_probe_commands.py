"""`elmokit probe`, `neighbors` and `weights`, as a user types them."""

import json

import pytest

from ..builders import command_line
from ..builders.task_models import toy_model

pytestmark = pytest.mark.e2e

SENTENCES = ["I sat by the bank .", "the bank of the river .", "a bank sat by the river ."]
TAGS = {"I": "PRON", "sat": "VERB", "by": "ADP", "the": "DET", "bank": "NOUN", ".": "PUNCT",
        "of": "ADP", "river": "NOUN", "a": "DET"}  # fmt: skip
WIC = (
    "ID\tTarget\tSENTENCE1\tSENTENCE2\tANSWER\n"
    "1\t배\t[배]를 타고 갔다\t[배]를 타고 .\tTrue\n2\t배\t[배]를 타고 갔다\t갔다 [배] .\tFalse\n"
)


def elmokit(*arguments, expect=0):
    return command_line.elmokit(*arguments, expect=expect, check_types=True)


def conllu(sentence):
    rows = [
        f"{number}\t{word}\t_\t{TAGS[word]}\t_\t_\t_\t_\t_\t_"
        for number, word in enumerate(sentence.split(), 1)
    ]
    return "\n".join(rows) + "\n\n"


def annotated(name):
    """Text and keys in which "bank" has two senses."""
    text, keys = [], []
    for number, sentence in enumerate(SENTENCES * 3):
        words = []
        for word in sentence.split():
            if word == "bank":
                one = f"{name}.s{number}.t0"
                words.append(f'<instance id="{one}" lemma="bank" pos="NOUN">bank</instance>')
                keys.append(f"{one} bank%{'1' if 'I' in sentence else '2'}")
            else:
                words.append(f'<wf lemma="{word}" pos="X">{word}</wf>')
        text.append(f'<sentence id="{name}.s{number}">{"".join(words)}</sentence>')
    return f'<corpus><text id="{name}">{"".join(text)}</text></corpus>', "\n".join(keys) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probes")
    toy_model().save(folder / "model")
    for name in ("pos", "senses", "wic"):
        (folder / name).mkdir()
    for split in ("train", "dev"):
        text = "".join(map(conllu, SENTENCES))
        (folder / "pos" / f"{split}.conllu").write_text(text, encoding="utf-8")
        (folder / "wic" / f"{split}.tsv").write_text(WIC, encoding="utf-8")
    for name in ("semcor", "semeval2007"):
        text, keys = annotated(name)
        (folder / "senses" / f"{name}.data.xml").write_text(text, encoding="utf-8")
        (folder / "senses" / f"{name}.gold.key.txt").write_text(keys, encoding="utf-8")
    (folder / "senses" / "senses.tsv").write_text(
        "lemma\tpos\trank\tsense_key\tsynset\tgloss\nbank\tn\t1\tbank%1\ts\tg\n", encoding="utf-8"
    )
    words = "".join(f"{word} {len(word)} 1\n" for word in TAGS)
    (folder / "vectors.txt").write_text(words, encoding="utf-8")
    (folder / "text.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return folder


def probe(folder, name, data, *options):
    cache = ("--layer-cache", folder / "layers") if name == "pos" else ()
    given = ("--data", folder / data, "--model", folder / "model", *cache, *options)
    return elmokit("probe", name, *given).stdout


def test_parts_of_speech_of_every_representation(folder):
    options = ("--random", "--vectors", folder / "vectors.txt")
    found = json.loads(probe(folder, "pos", "pos", *options, "--json"))
    assert found["probe"] == "pos"
    scores = {score["name"]: score for score in found["scores"]}
    assert list(scores) == [
        "majority tag", "layer 0", "layer 1", "layer 2", "random 0", "random 1", "random 2",
        "static",
    ]  # fmt: skip
    assert scores["layer 0"]["accuracy"] == 100
    assert scores["layer 0"]["num_words"] == 19
    assert "counts" not in scores["layer 0"]
    assert [(one["name"], one["untrained"], one["figure"]) for one in found["gains"]] == [
        (f"layer {layer}", f"random {layer}", "accuracy") for layer in range(3)
    ]
    assert found["gains"][0]["num_units"] == 3
    table = probe(folder, "pos", "pos", "--layers", "0").splitlines()
    assert table[-2].split() == ["layer", "0", "100.00", "100.00", "0.00"]


def test_senses_and_neighbors(folder):
    found = json.loads(probe(folder, "wsd", "senses", "--json"))["scores"]
    scores = {score["name"]: score["f1"] for score in found}
    assert scores["first sense"] == pytest.approx(100 / 3)
    assert scores["most frequent sense"] == pytest.approx(200 / 3)
    assert scores["layer 2"] == 100  # the test sentences are those of the corpus
    shown = probe(folder, "wsd", "senses", "--test", "semeval2007", "--random", "--layers", "top")
    first, _, layer, *_ = shown.splitlines()[1:]
    assert first.split() == ["first", "sense", "33.33", "–", "–", "33.33", "–", "–"]
    assert len(layer.split()) == 8
    assert "trained minus untrained, with confidence intervals (95%):" in shown
    assert shown.count("layer top") == 1 + 6
    table = probe(folder, "neighbors", "senses", "--layers", "top")
    assert "layer top" in table
    assert "percent of the 5 nearest among the lemma's occurrences: 9 words" in table


def test_words_in_context(folder):
    (score,) = json.loads(probe(folder, "wic", "wic", "--layers", "top", "--json"))["scores"]
    assert (score["accuracy"], score["num_pairs"], score["num_not_found"]) == (100, 2, 0)


def test_neighbors_of_a_word(folder):
    arguments = ("neighbors", folder / "text.txt", "--word", "bank", "--model", folder / "model")
    found = json.loads(elmokit(*arguments, "--json").stdout)
    assert [one["index"] for one in found["occurrences"]] == [4, 1, 1]
    assert all(len(one["neighbors"]) == 2 for one in found["occurrences"])
    shown = elmokit(*arguments, "--vectors", folder / "vectors.txt", "--context", 1).stdout
    assert "bank: 3 occurrences, top layer" in shown
    assert "a [bank] sat" in shown
    assert "static: " in shown
    query = ("--sentence", "I sat by the bank .", "-k", 1)
    one = elmokit(*arguments, *query).stdout.splitlines()
    assert one[1] == "I sat by the [bank] ."
    assert len(one) == 3
    (anything,) = json.loads(elmokit(*arguments, *query, "--any-word", "--json").stdout)[
        "occurrences"
    ]
    assert anything["neighbors"][0]["tokens"] != anything["tokens"]


def test_layer_weights_of_runs(folder):
    runs = []
    for name in ("one", "two"):
        elmokit(
            "train", "pos", "--data", folder / "pos", "--model", folder / "model",
            "-o", folder / name, "--layer-cache", folder / "layers",
            "--set", "train.epochs=1", "--set", "hidden_dims=[4]",
        )  # fmt: skip
        runs.append(folder / name)
    done = elmokit("weights", *runs, "--plot", folder / "weights.png", "--json")
    found = json.loads(done.stdout)
    assert [run["run"] for run in found["runs"]] == ["one", "two"]
    for run in found["runs"]:
        for mix in run["mixes"]:
            assert sum(mix["weights"]) == pytest.approx(1)
            assert len(mix["weights"]) == 3
    assert (folder / "weights.png").read_bytes().startswith(b"\x89PNG")
