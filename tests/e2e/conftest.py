"""One small model with a task run, shared by all tests of commands that only read them."""

import pytest

TABLE = "text\tlabel\nby the river\tgood\nI sat\tbad\n배를 타고\tgood\n갔다 .\tbad\n"


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder with `model`, a biLM with a softmax, and `run`, a task model of it; `layers`."""
    from ..builders.command_line import elmokit
    from ..builders.training_models import toy_model

    folder = tmp_path_factory.mktemp("shared")
    toy_model().save(folder / "model")
    (folder / "data").mkdir()
    for split in ("train", "dev"):
        (folder / "data" / f"{split}.tsv").write_text(TABLE, encoding="utf-8")
    elmokit(
        "train", "sentiment", "--data", folder / "data", "--model", folder / "model",
        "-o", folder / "run", "--layer-cache", folder / "layers", "--epochs", 1,
    )  # fmt: skip
    return folder
