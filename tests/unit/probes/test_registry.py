"""Probes by name."""

import pytest

from ...builders.task_models import toy_model

CONLLU = "1\tI\tI\tPRON\t_\t_\t2\t_\t_\t_\n2\tsat\tsit\tVERB\t_\t_\t0\t_\t_\t_\n\n"
WIC = "ID\tTarget\tSENTENCE1\tSENTENCE2\tANSWER\n1\tbank\tthe [bank]\t[bank] .\tTrue\n"


@pytest.fixture
def model_dir(tmp_path):
    toy_model().save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def write_splits(folder, text, suffix):
    for split in ("train", "dev"):
        (folder / f"{split}{suffix}").write_text(text, encoding="utf-8")


def test_parts_of_speech_of_all_that_is_compared(model_dir, data, tmp_path):
    from elmokit.probes.registry import run_probe

    write_splits(data, CONLLU, ".conllu")
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("i 1 0\nsat 0 1\nunused 5 5\n", encoding="utf-8")
    scores = run_probe(
        "pos", data, model_dir, random=True, vectors=vectors, cache_dir=tmp_path / "layers"
    )
    assert [score.name for score in scores] == [
        "majority tag", "layer 0", "layer 1", "layer 2", "random 0", "random 1", "random 2",
        "static",
    ]  # fmt: skip
    assert all(score.accuracy == 100 for score in scores)


def test_words_in_context_are_split_by_the_models_tokenizer(model_dir, data):
    from elmokit.probes.registry import run_probe

    write_splits(data, WIC, ".tsv")
    (score,) = run_probe("wic", data, model_dir, layers="top")
    assert (score.name, score.accuracy) == ("layer top", 100)


def test_a_place_for_layers_that_are_not_kept_is_told(model_dir, data, tmp_path, caplog):
    from elmokit.probes.registry import run_probe

    write_splits(data, WIC, ".tsv")
    run_probe("wic", data, model_dir, layers=0, cache_dir=tmp_path / "layers")
    assert "no effect on wic" in caplog.text
    assert not (tmp_path / "layers").exists()


def test_what_cannot_be_probed_is_told(model_dir, data):
    from elmokit.errors import InputError
    from elmokit.probes.registry import run_probe

    with pytest.raises(InputError, match="no probe 'syntax'; choose one of pos, wsd"):
        run_probe("syntax", data, model_dir)
    with pytest.raises(InputError, match="for wsd only"):
        run_probe("pos", data, model_dir, test="semeval2007")
    with pytest.raises(InputError, match="`layers` must be"):
        run_probe("pos", data, model_dir, layers=7)
    with pytest.raises(InputError, match="precision"):
        run_probe("pos", data, model_dir, precision="fp8")
