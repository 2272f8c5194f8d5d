import json
import pathlib
import tarfile

import pytest

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import FormatError
from elmokit.weights.bilm_tf import write_bilm_tf
from elmokit.weights.model_dir import load_model
from elmokit.weights.stored_bilm import read_bilm

from ...builders import foreign_models as foreign
from ...builders.conversion import convert
from ...builders.embedding_models import toy_model
from ...parity.oracles import read_datasets

WITH_WORDS = {"vocab": True, "softmax_config": SoftmaxConfig(kind="full")}


@pytest.fixture
def original(tmp_path):
    """A folder with the original's files, a vocabulary and a softmax."""
    folder = tmp_path / "original"
    files = [folder / name for name in ("options.json", "weights.hdf5")]
    write_bilm_tf(toy_model(raw=True, **WITH_WORDS), *files, vocab=folder / "vocab.txt")
    return folder


def test_there_and_back(original, tmp_path):
    there = convert(original, tmp_path / "model")
    back = convert(tmp_path / "model", tmp_path / "again")

    assert there.destination_format == "model directory"
    assert back.destination_format == "options.json + HDF5"
    for report in (there, back):
        assert report.same_bits
        assert report.max_difference == 0
        assert report.num_tokens > 20
        assert (report.vocabulary, report.softmax, report.losses) == (16, True, ())
        assert report.num_parameters == toy_model().num_parameters()
    assert there.model_hash == back.model_hash == load_model(tmp_path / "model").model_hash()
    for name in ("options.json", "weights.hdf5", "vocab.txt"):
        assert (tmp_path / "again" / name).read_bytes() == (original / name).read_bytes()


def test_nothing_of_an_older_export_stays_beside_the_new_weights(original, tmp_path):
    convert(original, tmp_path / "model")
    toy_model(raw=True).save(tmp_path / "bare")
    out = tmp_path / "out"
    convert(tmp_path / "model", out)
    convert(tmp_path / "bare", out, overwrite=True)
    assert sorted(path.name for path in out.iterdir()) == ["options.json", "weights.hdf5"]
    convert(tmp_path / "model", out, softmax="softmax.bin", overwrite=True)
    with pytest.raises(FileExistsError, match=r"softmax\.bin holds a softmax"):
        convert(tmp_path / "bare", out, overwrite=True)
    report = convert(out, tmp_path / "again")
    assert (report.vocabulary, report.softmax) == (16, True)
    before = {path.name: path.read_bytes() for path in (tmp_path / "bare").iterdir()}
    with pytest.raises(FileExistsError, match="bare is a model directory"):
        convert(tmp_path / "model", tmp_path / "bare", overwrite=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "bare").iterdir()} == before


@pytest.mark.parametrize("failing", range(1, 5))
def test_files_of_two_exports_are_never_read_together(original, tmp_path, failing):
    """Whichever of the renames fails, or the process ends there."""
    convert(original, tmp_path / "model")
    toy_model(**WITH_WORDS).save(tmp_path / "other")
    out, names = tmp_path / "out", {"softmax": "softmax.hdf5"}
    convert(tmp_path / "model", out, **names)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert len(before) == 4
    moved = []

    def failing_with(replace):
        def wrapper(self, target):
            if self.parent.parent == out:
                moved.append(target)
            if len(moved) == failing:
                raise OSError(5, "Input/output error", str(target))
            return replace(self, target)

        return wrapper

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pathlib.Path, "replace", failing_with(pathlib.Path.replace))
        with pytest.raises(OSError, match="Input/output error"):
            convert(tmp_path / "other", out, overwrite=True, **names)
    files = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    assert "options.json" not in files, "no set that can be read is mixed"
    assert files.keys() <= before.keys()


def test_an_export_that_cannot_be_written_leaves_the_files_of_before(original):
    before = {path.name: path.read_bytes() for path in original.iterdir()}
    files = [original / name for name in ("options.json", "weights.hdf5")]
    with pytest.raises(IsADirectoryError):
        write_bilm_tf(toy_model(raw=True), *files, vocab=original.parent)
    assert {path.name: path.read_bytes() for path in original.iterdir()} == before


@pytest.mark.parametrize(("dtype", "share"), [("float16", 0.7), ("int8", 0.9)])
def test_a_model_directory_becomes_a_smaller_one(tmp_path, dtype, share):
    model = toy_model(**WITH_WORDS)
    model.save(tmp_path / "whole")
    report = convert(tmp_path / "whole", tmp_path / "small", dtype=dtype)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "small")]
    assert sizes[1] < share * sizes[0]
    assert 0 < report.max_difference < 0.1
    rounded = model.stored().rounded_to(dtype).model_hash()
    assert read_bilm(tmp_path / "small").model_hash() == report.model_hash == rounded
    with pytest.raises(FileExistsError, match="--overwrite"):
        convert(tmp_path / "whole", tmp_path / "small", dtype=dtype)


def test_several_files_ask_for_a_choice(original, tmp_path):
    (original / "b.json").write_bytes((original / "options.json").read_bytes())
    with pytest.raises(FormatError, match=r"b\.json, options\.json.*--options"):
        convert(original, tmp_path / "model")
    convert(original, tmp_path / "model", options="b.json")
    (original / "b.hdf5").write_bytes((original / "weights.hdf5").read_bytes())
    with pytest.raises(FormatError, match=r"2 files .*b\.hdf5, weights\.hdf5.*--weights"):
        convert(original, tmp_path / "other", options="b.json")
    convert(original / "b.hdf5", tmp_path / "other", options="b.json")


def test_several_kinds_ask_for_a_choice(original, tmp_path):
    arrays = read_datasets(original / "weights.hdf5")
    options = json.loads((original / "options.json").read_text())
    foreign.write_checkpoint(original, arrays, options)
    with pytest.raises(FormatError, match=r"models of several kinds.*--weights"):
        convert(original, tmp_path / "model")
    for source, weights, kind in (
        (original, "weights.hdf5", "bilm-tf release"),
        (original, "model.ckpt-1250", "bilm-tf checkpoint"),
        (original / "model.ckpt-1250", None, "bilm-tf checkpoint"),
    ):
        report = convert(source, tmp_path / "model", weights=weights, overwrite=True)
        assert (report.source_format, report.max_difference) == (kind, 0)


def test_archives_are_unpacked_for_the_time(original, tmp_path):
    source = tmp_path / "elmo.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        archive.add(original, "elmo/model")
    report = convert(source, tmp_path / "model")
    assert (report.source_format, report.vocabulary) == ("bilm-tf release", 16)
    assert report.source.startswith(str(source))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"original", "elmo.tar.gz", "model"}, "nothing is left"
