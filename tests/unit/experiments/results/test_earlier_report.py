"""What an experiment finds where it is to write its report."""

import copy
import json

import pytest

from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.results.earlier_report import check_earlier_report

BILM, VECTORS = "en, hash 9316ff79997c", "vectors.bin, hash 47acf869d3b4"
TEST = {"path": "test/nli/test.jsonl", "sha256": "aa"}
OPTIONS = {
    "experiment": "table1",
    "made": {"biLM": BILM, "word vectors": VECTORS},
    "tuned": False,
    "data": {"nli-snli-sample": {"train": "1", "dev": "2"}},
}


def planned(*, seed=0, epochs=3, rate=0.001):
    config = {"task": "nli", "train": {"epochs": epochs, "learning_rate": rate, "seed": seed}}
    return PlannedRun(
        task="nli", dataset="nli-snli-sample", condition="elmo", seed=seed,
        metadata={"config": config},
    )  # fmt: skip


def recorded(run, **changes):
    cell = {key: getattr(run, key) for key in ("task", "dataset", "condition", "share", "seed")}
    return cell | {"config": run.metadata["config"]} | changes


@pytest.fixture
def check(tmp_path):
    """Write an earlier report, with changes, and check before one with other changes."""

    def check(earlier=None, now=None, *, runs=(), plan=None):
        tables = []
        for changes in (earlier, now):
            table = copy.deepcopy(OPTIONS)
            for key, value in (changes or {}).items():
                table[key] = table[key] | value if key in ("made", "data") else value
            tables.append(table)
        report = tables[0] | {"runs": list(runs) or [recorded(planned())]}
        (tmp_path / "results.json").write_text(json.dumps(report), encoding="utf-8")
        check_earlier_report(tmp_path, tables[1], plan or [planned()])

    return check


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"now": {"experiment": "table2"}}, "experiment: table1 there, table2 now"),
        ({"now": {"made": {"biLM": "m, hash 00ff"}}}, f"biLM: {BILM} there, m, hash 00ff now"),
        ({"now": {"made": {"word vectors": "v, hash 00ff"}}}, f"word vectors: {VECTORS} there"),
        ({"now": {"tuned": True}}, "--tune, --rates: learning rates are not tuned there"),
        ({"now": {"data": {"nli-snli-sample": {"train": "3"}}}}, "data: .* nli-snli-sample"),
        ({"plan": [planned(epochs=5)]}, r"nli, train\.epochs: 3 there, 5 now"),
        ({"plan": [planned(rate=0.1)]}, r"nli, train\.learning_rate: 0\.001 there, 0\.1 now"),
        ({"runs": [recorded(planned(), task="qa")]}, "--tasks: without qa"),
        (
            {
                "earlier": {"tuned": True},
                "now": {"tuned": True, "made": {"learning rates": "from x.json"}},
                "plan": [planned(rate=0.1)],
            },
            r"nli, train\.learning_rate: 0\.001 there, 0\.1 now",
        ),
        ({"runs": [recorded(planned(seed=1))]}, "elmo, seed 1 has results and is not planned"),
        ({"earlier": {"test": {"files": {"nli": TEST}}}}, r"nli: .*test\.jsonl there, none"),
    ],
)
def test_results_of_other_options_are_kept(check, given, message):
    with pytest.raises(FileExistsError, match=rf"other options(?s:.)*{message}(?s:.)*--output"):
        check(**given)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"now": {"made": {"biLM": "en2, hash 9316ff79997c"}}},  # the same at another place
        {"now": {"data": {"qa": {"train": "9"}}}},
        {"plan": [planned(), planned(seed=1)]},
        {"runs": [{"task": "nli"}]},  # a version that recorded less
        {"now": {"test": {"files": {"nli": TEST}}}},
        {"earlier": {"tuned": True}, "now": {"tuned": True}, "plan": [planned(rate=0.1)]},
        {"runs": [recorded(planned(), config=None)]},
        {"runs": [recorded(planned(), config={"task": "nli", "train": {"old": 1}})]},
    ],
)
def test_the_same_options_and_more_may_go_on(check, given):
    check(**given)


def test_what_an_earlier_version_did_not_record_is_no_difference(tmp_path):
    earlier = {"experiment": "table1", "made": {}, "runs": []}
    (tmp_path / "results.json").write_text(json.dumps(earlier), encoding="utf-8")
    check_earlier_report(tmp_path, OPTIONS | {"tuned": True}, [planned()])


@pytest.mark.parametrize("name", ["results.json", "table.md", "plot.png"])
@pytest.mark.parametrize("content", ["", "[]", '{"runs": 3}'])
def test_foreign_files_are_kept(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(FileExistsError, match=rf"no experiment wrote.*{name}.*--output"):
        check_earlier_report(tmp_path, OPTIONS, [planned()])


def test_other_files_and_an_empty_folder_are_no_obstacle(tmp_path):
    check_earlier_report(tmp_path, OPTIONS, [planned()])
    (tmp_path / "notes.txt").touch()
    check_earlier_report(tmp_path, OPTIONS, [planned()])
