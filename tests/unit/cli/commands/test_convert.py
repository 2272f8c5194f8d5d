import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from elmokit.cli import app

CASE = Path(__file__).parents[3] / "parity" / "fixtures" / "variant_nocnnproj"


@pytest.fixture
def elmokit():
    """A function that runs the command and returns (exit code, stdout, stderr)."""

    def run(*arguments):
        result = CliRunner().invoke(app, ["convert", *map(str, arguments)])
        return result.exit_code, result.stdout, result.stderr

    return run


def test_json_is_one_object_and_nothing_else(elmokit, tmp_path):
    files = ("--options", CASE / "options.json", "--weights", CASE / "weights.hdf5")
    _, out, _ = elmokit(*files, tmp_path / "m", "--json")
    there = json.loads(out)
    code, out, _ = elmokit(tmp_path / "m", tmp_path / "back", "--json")
    back = json.loads(out)
    assert code == 0
    assert there["same_bits"]
    assert back["same_bits"]
    assert there["model_hash"] == back["model_hash"]
    assert there["max_difference"] == back["max_difference"] == 0
    options = json.loads((tmp_path / "back" / "options.json").read_text())
    assert options == json.loads((CASE / "options.json").read_text())


def test_what_is_read_is_never_replaced(elmokit, tmp_path):
    vocab = "<S>\n</S>\n<UNK>\n"
    assert elmokit(CASE, tmp_path / "m")[0] == 0
    (tmp_path / "m" / "vocab.txt").write_text(vocab)
    for arguments in (
        [tmp_path / "m", tmp_path / "m"],
        [CASE, tmp_path / "m", "--vocab", tmp_path / "m" / "vocab.txt"],
    ):
        code, _, err = elmokit(*arguments, "--overwrite")
        assert code == 2
        assert "vocab.txt is read by this command" in err
        assert (tmp_path / "m" / "vocab.txt").read_text() == vocab
        assert not (tmp_path / "m" / "options.json").exists()
