"""The data that `benchmarks/bench_tasks.py` makes: every task can read and learn from them."""

import sys

import pytest


@pytest.fixture(scope="module")
def bench(pytestconfig):
    folder = str(pytestconfig.rootpath / "benchmarks")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(folder)
        import bench_tasks

        yield bench_tasks
    for name in ("bench_tasks", "common", "shapes", "texts"):
        sys.modules.pop(name, None)


def test_made_examples_are_those_of_each_task(bench, tmp_path):
    from elmokit.tasks.formats.splits import find_split
    from elmokit.tasks.registry import TASKS, find_task

    plan = bench.PLANS["tiny"]
    folders = bench.make_data(tmp_path, plan)
    assert set(folders) == set(TASKS)
    for name, folder in folders.items():
        task = find_task(name)
        read = {
            split: task.read(find_split(folder, split), training=True, tokenize=str.split)
            for split in ("train", "dev")
        }
        if name != "qa":  # five sentences make a paragraph
            assert len(read["train"]) == plan.train_examples
            assert len(read["dev"]) == plan.dev_examples
            assert len(task.labels(read["train"])) > 1
        golds = [task.gold(example) for example in read["dev"]]
        assert len(golds) == len(read["dev"]) > 0
