"""One process as a world of one; the exchanges of two are tested by `e2e`."""

import torch

from elmokit.training.distributed import World, world


def test_without_torchrun_there_is_a_world_of_one(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with world("cpu") as processes:
        assert processes == World(0, 1, torch.device("cpu"))
        assert processes.is_main


def test_exchanges_of_one_process_change_nothing():
    processes, values = World(), torch.arange(6.0).view(2, 3)
    assert processes.mean(values) is values
    assert processes.from_main(values) is values
    assert processes.gather_rows(values, dim=1) is values
    assert processes.agree(True) is True
    assert processes.agree(False) is False
    module = torch.nn.Linear(2, 2)
    assert processes.wrap(module) is module
    processes.barrier()


def test_only_rank_0_is_main():
    assert not World(rank=1, size=2).is_main
