"""Fixtures that several files of task tests share."""

import pytest


@pytest.fixture
def squad(write):
    """Write paragraphs as a file in the layout of SQuAD; return its path."""
    from ...builders.squad_data import squad_text

    def squad(*paragraphs):
        return write(squad_text(*paragraphs), name="train.json")

    return squad


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    from ...builders.task_models import saved_toy_model

    return saved_toy_model(tmp_path_factory)
