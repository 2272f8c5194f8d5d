"""Folders of ELMoForManyLangs; `tests/parity/test_imports.py` has their activations."""

import json

import pytest

from elmokit.errors import FormatError

from ....builders import foreign_models as foreign
from ....builders.conversion import convert
from ....parity.oracles import case, read_datasets


@pytest.fixture
def folder(tmp_path):
    inputs = case("edge_stateless")
    arrays = read_datasets(inputs.directory / "weights.hdf5")
    options = json.loads(inputs.options_path.read_text())
    foreign.write_many_langs(tmp_path / "136", arrays, options)
    return tmp_path / "136"


def test_configurations(folder, tmp_path):
    network = json.loads((folder / "configs" / "cnn_50.json").read_text())
    (folder / "configs" / "cnn_0.json").write_text(json.dumps(network | {"encoder": {}}))
    first = convert(folder, tmp_path / "a")
    assert first.notes == (), "config.json names the right one"
    (folder / "config.json").unlink()
    with pytest.raises(FormatError, match=r"2 files .*cnn_0\.json.*--options"):
        convert(folder, tmp_path / "b")
    report = convert(folder, tmp_path / "b", options="configs/cnn_50.json")
    assert report.model_hash == first.model_hash
    for name in ("cnn_0.json", "cnn_50.json"):
        (folder / "configs" / name).unlink()
    assert "both clips (3)" in convert(folder, tmp_path / "c").notes[0]
    other = {**network, "encoder": {**network["encoder"], "name": "lstm"}}
    (folder / "config.json").write_text(json.dumps(other))
    with pytest.raises(FormatError, match=r"its configuration has 'lstm'"):
        convert(folder, tmp_path / "d")


def test_half_a_folder(folder, tmp_path):
    lists = (folder / "char.dic").read_bytes()
    (folder / "char.dic").write_text("a\t0\n")
    with pytest.raises(FormatError, match=r"no lists of ids .*<pad>, <bow>.* \d+ rows"):
        convert(folder, tmp_path / "model")
    (folder / "char.dic").write_bytes(lists)
    (folder / "encoder.pkl").unlink()
    with pytest.raises(FormatError, match=r"no files have the tensor .*encoder\.pkl"):
        convert(folder, tmp_path / "model")


def with_an_id_twice(lines):
    return [*lines[:5], lines[5].rpartition("\t")[0] + "\t4", *lines[6:]]


@pytest.mark.parametrize("name", ["char.dic", "word.dic"])
@pytest.mark.parametrize("change", [lambda lines: lines[:-1], with_an_id_twice])
def test_a_list_has_a_line_for_each_row_of_its_table(folder, tmp_path, name, change):
    lines = (folder / name).read_text(encoding="utf-8").split("\n")[:-1]
    changed = change(lines)
    (folder / name).write_text("\n".join(changed) + "\n", encoding="utf-8")
    with pytest.raises(FormatError) as raised:
        convert(folder, tmp_path / "model")
    for part in (name, f"{len(changed)} lines", f"{len(lines)} rows"):
        assert part in str(raised.value)
