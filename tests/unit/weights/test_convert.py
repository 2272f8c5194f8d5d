import bz2
import gzip
import json
import lzma
import pathlib
import tarfile
import zipfile

import pytest
import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import FormatError, InputError
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights import convert as convert_module
from elmokit.weights.bilm_tf import read_bilm_tf, write_bilm_tf
from elmokit.weights.convert import convert
from elmokit.weights.model_dir import PretrainedBiLM, load_model
from elmokit.weights.readers.registry import FORMATS

from ...builders import foreign_models as foreign
from ...builders.training_models import lexicon_model
from ...parity.oracles import read_datasets

VOCAB = WordVocab(["<S>", "</S>", "<UNK>", "the", "bank"])
LSTM = LSTMConfig(cell_dim=8, projection_dim=4)


def build(*, words=False, raw=True, **settings):
    config = BiLMConfig(
        char_vocab=CharVocabConfig(normalization="none", truncation="byte")
        if raw
        else CharVocabConfig(),
        char_cnn=None if words else CharCNNConfig(embedding_dim=3, filters=((1, 4), (2, 5))),
        num_words=len(VOCAB) if words else None,
        lstm=LSTM,
    )
    return PretrainedBiLM(config, **settings)


@pytest.fixture
def original(tmp_path):
    """A folder with the original's files, a vocabulary and a softmax."""
    folder = tmp_path / "original"
    model = build(word_vocab=VOCAB, softmax_config=SoftmaxConfig(kind="full"))
    write_bilm_tf(model, folder / "options.json", folder / "weights.hdf5")
    VOCAB.write(folder / "vocab.txt")
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
        assert (report.vocabulary, report.softmax) == (5, True)
        assert report.num_parameters == build().num_parameters()
        assert report.losses == ()
    assert there.model_hash == back.model_hash == load_model(tmp_path / "model").model_hash()
    for name in ("options.json", "weights.hdf5", "vocab.txt"):
        assert (tmp_path / "again" / name).read_bytes() == (original / name).read_bytes()


def test_word_input_without_vocabulary(tmp_path):
    write_bilm_tf(build(words=True), tmp_path / "options.json", tmp_path / "weights.hdf5")
    report = convert(tmp_path, tmp_path / "model")
    assert report.vocabulary is None
    assert report.num_tokens > 20
    assert report.max_difference == 0


def test_files_of_any_name_and_place(original, tmp_path):
    options, weights = tmp_path / "o.json", tmp_path / "elmo.model"
    (original / "options.json").rename(options)
    (original / "weights.hdf5").rename(weights)
    report = convert(weights, tmp_path / "model", options=options, vocab=original / "vocab.txt")
    assert report.vocabulary == 5
    convert(tmp_path / "model", tmp_path / "out", options="a.json", weights="b.h5", softmax="s.h5")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"a.json", "b.h5", "s.h5", "vocab.txt"}


def test_what_gets_lost_is_reported(tmp_path):
    build(raw=False).save(tmp_path / "model")
    report = convert(tmp_path / "model", tmp_path / "out")
    assert len(report.losses) == 2
    assert "plain-1" in report.losses[0]


def test_a_difference_is_not_hidden(original, tmp_path, monkeypatch):
    """The report is measured, not assumed."""

    def damaged(path):
        model = load_model(path)
        with torch.no_grad():
            model.forward_layers[0].bias += 0.5
        return model

    monkeypatch.setattr(convert_module, "load_model", damaged)
    report = convert(original, tmp_path / "model")
    assert not report.same_bits
    assert report.max_difference > 1e-3


def test_a_vocabulary_for_a_model_directory_is_refused(tmp_path):
    build().save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"/model .*vocab"):
        convert(tmp_path / "model", tmp_path / "out", vocab=tmp_path / "vocab.txt")


@pytest.mark.parametrize("name", ["out.hdf5", "out.safetensors", "model.bin"])
def test_a_folder_is_not_called_like_a_file(original, name, tmp_path):
    build().save(tmp_path / "model")
    for source in (tmp_path / "model", original):
        with pytest.raises(ValueError, match=r"name of a file.*without such an ending; only ONNX"):
            convert(source, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_model_that_cannot_be_written_leaves_the_older_export_whole(tmp_path):
    build().save(tmp_path / "model")
    (tmp_path / "out").mkdir()
    for name in ("options.json", "weights.hdf5", "vocab.txt"):
        (tmp_path / "out" / name).write_text(name)
    lexicon_model().save(tmp_path / "lexicon")
    with pytest.raises(InputError, match="lexicon"):
        convert(tmp_path / "lexicon", tmp_path / "out", overwrite=True)
    for name in ("options.json", "weights.hdf5", "vocab.txt"):
        assert (tmp_path / "out" / name).read_text() == name


def test_the_working_directory_is_converted(original, tmp_path, monkeypatch):
    convert(original, tmp_path / "model")
    for folder, target in ((original, "again"), (tmp_path / "model", "back")):
        monkeypatch.chdir(folder)
        convert(".", tmp_path / target)
    assert (tmp_path / "again/config.json").is_file()
    assert (tmp_path / "back/options.json").is_file()


def test_nothing_of_an_older_export_stays_beside_the_new_weights(original, tmp_path):
    convert(original, tmp_path / "model")
    build().save(tmp_path / "bare")
    out = tmp_path / "out"
    convert(tmp_path / "model", out)
    convert(tmp_path / "bare", out, overwrite=True)
    assert sorted(path.name for path in out.iterdir()) == ["options.json", "weights.hdf5"]
    convert(tmp_path / "model", out, softmax="softmax.bin", overwrite=True)
    with pytest.raises(FileExistsError, match=r"softmax\.bin holds a softmax"):
        convert(tmp_path / "bare", out, overwrite=True)
    report = convert(out, tmp_path / "again")
    assert (report.vocabulary, report.softmax) == (5, True)


@pytest.mark.parametrize("failing", range(1, 6))
def test_an_export_replaces_all_files_of_an_older_one_or_none(original, tmp_path, failing):
    """Whichever of the renames fails, or the process ends there."""
    convert(original, tmp_path / "model")
    build(raw=False).save(tmp_path / "other")
    out = tmp_path / "out"
    convert(tmp_path / "model", out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    seen = []

    def failing_with(rename):
        def wrapper(self, target):
            seen.append({path.name: path.read_bytes() for path in out.iterdir() if path.is_file()})
            if len(seen) == failing:
                raise OSError(5, "Input/output error", str(target))
            return rename(self, target)

        return wrapper

    with pytest.MonkeyPatch.context() as patch:
        for name in ("rename", "replace"):
            patch.setattr(pathlib.Path, name, failing_with(getattr(pathlib.Path, name)))
        with pytest.raises(OSError, match="Input/output error"):
            convert(tmp_path / "other", out, overwrite=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    for files in seen:
        assert "options.json" not in files or files == before, "no set that can be read is mixed"


@pytest.mark.parametrize("suffix", ["gz", "xz", "bz2"])
def test_a_compressed_vocabulary_is_read_wherever_a_plain_one_is(original, tmp_path, suffix):
    opener = {"gz": gzip, "xz": lzma, "bz2": bz2}[suffix].open
    for name in ("vocab.txt", "words"):
        path = original / f"{name}.{suffix}"
        with opener(path, "wb") as file:
            file.write("\n".join(VOCAB.words).encode())
        (original / "vocab.txt").unlink(missing_ok=True)
        for source, settings in (
            (original, {}), (path, {}), (original, {"vocab": path}), (tmp_path / "a.zip", {})
        ):  # fmt: skip
            with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
                for file in original.iterdir():
                    archive.write(file, file.name)
            report = convert(source, tmp_path / "model", overwrite=True, **settings)
            assert report.vocabulary == 5
        path.unlink()


def test_a_vocabulary_that_the_encoder_does_not_need_can_be_left_out(original, tmp_path):
    with (original / "vocab.txt").open("a") as file:
        file.write("bank\n")
    with pytest.raises(FormatError, match=r"vocab\.txt.*'bank'.*--encoder-only"):
        convert(original, tmp_path / "model")
    assert convert(original, tmp_path / "model", encoder_only=True).vocabulary is None


@pytest.mark.parametrize("name", ["options.json", "weights.hdf5", "vocab.txt"])
def test_a_pointer_of_git_lfs_is_called_one(original, tmp_path, name):
    (original / name).write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    )
    files = {"options": original / "options.json", "weights": original / "weights.hdf5"}
    for read in (
        lambda: convert(original, tmp_path / "model"),
        lambda: read_bilm_tf(**files, vocab=original / "vocab.txt"),
    ):
        with pytest.raises(FormatError, match=rf"{name}: .*Git LFS.*git lfs pull"):
            read()


def test_a_pointer_of_git_lfs_that_is_not_needed_is_passed_over(original, tmp_path):
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    (original / "other.hdf5").write_text(pointer)
    report = convert(original / "weights.hdf5", tmp_path / "model")
    assert "other.hdf5" in str(report)
    with pytest.raises(FormatError, match=r"other\.hdf5: .*Git LFS"):
        convert(original / "other.hdf5", tmp_path / "other")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_options_of_a_windows_editor(original, tmp_path, encoding):
    expected = convert(original, tmp_path / "a").model_hash
    path = original / "options.json"
    path.write_text(path.read_text(), encoding=encoding)
    if encoding == "utf-16":
        with pytest.raises(FormatError, match=r"options\.json: .*UTF-16.*iconv -f UTF-16"):
            convert(original, tmp_path / "b")
    else:
        assert convert(original, tmp_path / "b").model_hash == expected


class TestFindingFiles:
    """A source is what its files hold, whatever they are called."""

    def test_any_names(self, original, tmp_path):
        for name, other in (
            ("options.json", "about"), ("weights.hdf5", "elmo.model"), ("vocab.txt", "words")
        ):  # fmt: skip
            (original / name).rename(original / other)
        report = convert(original, tmp_path / "model")
        assert (report.source_format, report.vocabulary) == ("bilm-tf release", 5)
        assert report.source == f"{original}: about, elmo.model"

    def test_a_separate_softmax_is_found(self, original, tmp_path):
        convert(original, tmp_path / "model")
        convert(tmp_path / "model", tmp_path / "two", softmax="elmo_softmax_weights.hdf5")
        assert convert(tmp_path / "two", tmp_path / "again").softmax
        report = convert(tmp_path / "two", tmp_path / "third", encoder_only=True)
        assert (report.vocabulary, report.softmax) == (None, False)

    def test_several_ask_for_a_choice(self, original, tmp_path):
        (original / "b.json").write_bytes((original / "options.json").read_bytes())
        with pytest.raises(FormatError, match=r"b\.json, options\.json.*--options"):
            convert(original, tmp_path / "model")
        convert(original, tmp_path / "model", options="b.json")
        (original / "b.hdf5").write_bytes((original / "weights.hdf5").read_bytes())
        with pytest.raises(FormatError, match=r"2 HDF5 files .*b\.hdf5, weights\.hdf5.*--weights"):
            convert(original, tmp_path / "other", options="b.json")
        (original / "below").mkdir()
        (original / "below" / "other.ckpt").write_bytes(foreign.table([]))
        convert(original / "b.hdf5", tmp_path / "other", options="b.json")

    def test_a_missing_file_is_named(self, original, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no file other\.hdf5.*--weights"):
            convert(original, tmp_path / "model", weights="other.hdf5")
        (original / "options.json").unlink()
        expected = r"no files of options.*HDF5: weights\.hdf5.*--options"
        with pytest.raises(FormatError, match=expected):
            convert(original, tmp_path / "model")

    def test_what_is_no_model_is_said_to_be_none(self, tmp_path):
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / "thesis.txt").write_text("ELMo\n")
        (folder / "weights.hdf5").write_text("not HDF5")
        with pytest.raises(FormatError, match=r"holds other: thesis\.txt, weights") as raised:
            convert(folder, tmp_path / "model")
        for kind in FORMATS:
            assert kind.name in str(raised.value)
            assert kind.files in str(raised.value)

    def test_messages_keep_the_names_of_a_relative_source(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "thesis.pdf").write_bytes(b"%PDF\0")
        with pytest.raises(FormatError, match=r"\. is not a known .* other: thesis\.pdf"):
            convert("thesis.pdf", "model")

    def test_several_kinds_ask_for_a_choice(self, original, tmp_path):
        arrays = read_datasets(original / "weights.hdf5")
        options = json.loads((original / "options.json").read_text())
        foreign.write_checkpoint(original, arrays, options)
        with pytest.raises(FormatError, match=r"models of several kinds.*--weights"):
            convert(original, tmp_path / "model")
        for weights, kind in (
            ("weights.hdf5", "bilm-tf release"),
            ("model.ckpt-1250", "bilm-tf checkpoint"),
            ("model.ckpt-1250.index", "bilm-tf checkpoint"),
        ):
            report = convert(original, tmp_path / "model", weights=weights, overwrite=True)
            assert (report.source_format, report.max_difference) == (kind, 0)
        report = convert(original / "model.ckpt-1250", tmp_path / "model", overwrite=True)
        assert report.source_format == "bilm-tf checkpoint"

    def test_options_without_use_are_refused(self, original, tmp_path):
        convert(original, tmp_path / "model")
        for settings in ({"name": "x"}, {"encoder_only": True}):
            with pytest.raises(InputError, match="model directory"):
                convert(tmp_path / "model", tmp_path / "back", **settings)

    def test_a_damaged_model_directory_is_no_foreign_model(self, original, tmp_path):
        convert(original, tmp_path / "model")
        (tmp_path / "model" / "config.json").write_text("{")
        with pytest.raises(FormatError, match="not valid JSON"):
            convert(tmp_path / "model", tmp_path / "back")


class TestArchives:
    def test_zips_of_folders_and_of_archives(self, original, tmp_path):
        inner = tmp_path / "elmo.tar.gz"
        with tarfile.open(inner, "w:gz") as archive:
            archive.add(original, "elmo/model")
        with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
            archive.write(inner, "elmo.tar.gz")
            archive.writestr("README", "ELMo")
        for source in (inner, tmp_path / "outer.zip"):
            report = convert(source, tmp_path / "model", overwrite=True)
            assert (report.source_format, report.vocabulary) == ("bilm-tf release", 5)
            assert report.source.startswith(str(source))
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"original", "elmo.tar.gz", "outer.zip", "model"}, "nothing is left"

    def test_errors_name_the_archive(self, original, tmp_path):
        (original / "weights.hdf5").write_bytes((original / "weights.hdf5").read_bytes()[:-900])
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            for path in original.iterdir():
                archive.write(path, path.name)
        with pytest.raises(FormatError, match=r"a\.zip/weights\.hdf5: .*whole HDF5") as raised:
            convert(tmp_path / "a.zip", tmp_path / "model")
        assert "partial" not in str(raised.value)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "original"]

    def test_an_archive_that_leads_out_is_refused(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr("../options.json", "{}")
        with pytest.raises(FormatError, match="leads out"):
            convert(tmp_path / "a.zip", tmp_path / "model")
        assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("names", [{"softmax": "weights.hdf5"}, {"options": "a", "weights": "a"}])
def test_outputs_of_one_name_are_refused(original, tmp_path, names):
    convert(original, tmp_path / "model")
    with pytest.raises(InputError, match="must differ"):
        convert(tmp_path / "model", tmp_path / "out", **names)
    assert not (tmp_path / "out").exists()


def test_a_text_in_place_of_a_model_is_told(original, tmp_path):
    for folder in (tmp_path, tmp_path / "alone"):
        folder.mkdir(exist_ok=True)
        (folder / "corpus.txt").write_text("the bank of the river\n")
        (folder / "more.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
        with pytest.raises(FormatError, match=r"corpus\.txt is a text file, not a model"):
            convert(folder / "corpus.txt", tmp_path / "out")


@pytest.mark.parametrize("name", ["options.json", "vocab.txt", "weights.hdf5"])
def test_any_file_of_a_model_stands_for_the_model(original, name, tmp_path):
    report = convert(original / name, tmp_path / "model")
    assert report.same_bits
    assert report.vocabulary == 5


def test_the_options_that_are_given_are_those_that_are_read(original, tmp_path):
    (original / "other.json").write_text('{"lstm": {}}')
    assert convert(original / "options.json", tmp_path / "model").same_bits
    with pytest.raises(FormatError, match=r"other\.json"):
        convert(original / "other.json", tmp_path / "model2")
