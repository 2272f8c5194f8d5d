"""Fixtures that several files of task tests share."""

import json

import pytest


@pytest.fixture
def squad(tmp_path):
    """Write paragraphs as a file in the layout of SQuAD; return its path."""

    def squad(*paragraphs):
        path = tmp_path / "train.json"
        content = {"version": "1.1", "data": [{"title": "t", "paragraphs": list(paragraphs)}]}
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return squad


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    from ...builders.task_models import saved_toy_model

    return saved_toy_model(tmp_path_factory)
