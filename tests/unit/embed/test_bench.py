import pytest

from elmokit.embed.bench import bench
from elmokit.errors import FormatError

from ...builders.embedding_models import toy_model


def test_every_precision_alone_and_in_a_batch(tmp_path):
    toy_model().save(tmp_path / "model")
    seen = []
    report = bench(tmp_path / "model", seconds=0.01, on_progress=seen.append)
    assert [(s.precision, s.sentences_at_once) for s in report.speeds] == [
        (precision, count) for precision in ("fp32", "bf16", "int8") for count in (1, 64)
    ]
    assert seen == [1, 2, 3, 4, 5, 6]
    (tmp_path / "blank.txt").write_text("\n\n \n")
    with pytest.raises(FormatError, match=r"/blank\.txt"):
        bench(tmp_path / "model", tmp_path / "blank.txt", seconds=0.01)
