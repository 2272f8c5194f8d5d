import gzip
import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file

import elmokit
from elmokit.web.page import models
from elmokit.web.page.export import export_explorer
from elmokit.web.page.models import STATIC

from ....builders.browser_calls import load_exported
from ....builders.training_models import toy_model


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explored") / "toy"
    toy_model().save(folder)
    return folder


def test_an_export_has_page_catalog_rules_and_models(model_dir, tmp_path):
    site = tmp_path / "new" / "site"
    report = export_explorer([str(model_dir), str(model_dir)], site)
    assert report.models == ["toy"]  # named twice, written once
    files = [path for path in site.rglob("*") if path.is_file()]
    assert report.num_files == len(files)
    assert report.num_bytes == sum(path.stat().st_size for path in files)
    for path in STATIC.rglob("*.js"):
        assert (site / path.relative_to(STATIC)).read_bytes() == path.read_bytes()
    found = json.loads((site / "explorer.json").read_text(encoding="utf-8"))
    (entry,) = found["models"]
    assert found["compute"] == entry["compute"] == "browser"
    folder = site / entry["path"]
    packed = (folder / "vocab.txt.gz").read_bytes()
    assert gzip.decompress(packed) == (model_dir / "vocab.txt").read_bytes()
    model = elmokit.load_model(model_dir)
    model.round_to("int6")
    assert entry["hash"] == model.model_hash() == load_exported(folder).model_hash()
    assert json.loads((folder / "config.json").read_bytes())["weights"] == "int6"
    warm = load_file(site / entry["path"] / "warm.safetensors")
    assert warm["hidden"].shape[:2] == (entry["num_layers"] - 1, 2)
    assert np.abs(warm["cell"]).max() > 0
    rules = json.loads((site / "tokenizer-rules.json").read_text(encoding="utf-8"))
    assert rules["simple"] == {}  # the toy model takes words between spaces
    assert all(path.stat().st_mode & 0o777 == 0o666 & ~_umask() for path in files)


def test_stored_weights_are_copied_as_they_are(model_dir, tmp_path):
    export_explorer([str(model_dir)], tmp_path / "site", weights="stored")
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        copy = tmp_path / "site/models/toy" / name
        assert copy.read_bytes() == (model_dir / name).read_bytes()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_nothing_is_overwritten(model_dir, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(FileExistsError, match=r"mine\.txt"):
        export_explorer([str(model_dir)], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_interrupted_export_leaves_nothing(model_dir, tmp_path, monkeypatch):
    def interrupt(model):
        raise KeyboardInterrupt

    monkeypatch.setitem(models.MADE_FILES, "warm.safetensors", interrupt)
    with pytest.raises(KeyboardInterrupt):
        export_explorer([str(model_dir)], tmp_path / "site")
    assert list(tmp_path.iterdir()) == []
