"""When a training stops, and whose weights it keeps."""

import torch

from elmokit.tasks.runs.training import EarlyStopping


def epochs_of(scores, patience):
    """How many epochs are trained, and with which weight (their number) the model ends."""
    model = torch.nn.Linear(1, 1, bias=False)
    stopping = EarlyStopping(model, patience=patience)
    for number, score in enumerate(scores, 1):
        torch.nn.init.constant_(model.weight, number)
        stopping.update(score, is_whole_epoch=True)
        if stopping.is_over:
            break
    stopping.restore()
    return number, int(model.weight)


def test_it_stops_after_some_epochs_without_a_new_best_and_restores_it():
    assert epochs_of([0.1, 0.3, 0.2, 0.3, 0.9], patience=2) == (4, 2)


def test_epochs_before_the_first_score_above_0_do_not_count():
    assert epochs_of([0, 0, 0, 0, 0.1, 0.4, 0.2, 0.2, 0.9], patience=2) == (8, 6)
