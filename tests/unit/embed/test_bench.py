import pytest

from elmokit.embed import bench as module
from elmokit.errors import InputError

from ...builders.embedding_models import toy_model


def test_what_is_computed_in_fp32_is_not_called_int8(tmp_path, monkeypatch, caplog):
    toy_model().save(tmp_path / "model")
    text = tmp_path / "text.txt"
    text.write_text("I sat by the bank .\n", encoding="utf-8")
    monkeypatch.setattr(module, "load_kernels", lambda: None)
    speeds = module.bench(tmp_path / "model", text, ["fp32", "int8"], seconds=0.01)
    assert list(speeds) == ["fp32"]
    assert "int8 is not measured" in caplog.text
    with pytest.raises(InputError, match="fp8"):
        module.bench(tmp_path / "model", text, ["fp8"], seconds=0.01)
