import gzip

import pytest

from elmokit.embed.bench import bench
from elmokit.errors import FormatError

from ...builders.embedding_models import toy_model


@pytest.fixture
def model_dir(tmp_path):
    toy_model().save(tmp_path / "model")
    return tmp_path / "model"


def test_every_precision_alone_and_in_a_batch(model_dir):
    seen = []
    report = bench(model_dir, seconds=0.01, on_progress=seen.append)
    assert [(s.precision, s.sentences_at_once) for s in report.speeds] == [
        (precision, count) for precision in ("fp32", "bf16", "int8") for count in (1, 64)
    ]
    assert seen == [1, 2, 3, 4, 5, 6]
    assert report.corpus is None


def test_the_estimate_grows_with_the_text(model_dir, tmp_path):
    line = "I sat by the bank of the river .\n"
    (tmp_path / "text.txt").write_text(line * 5000)
    report = bench(model_dir, tmp_path / "text.txt", seconds=0.01)
    assert report.corpus.tokens == 5000 * 11
    speed = next(s for s in report.speeds if (s.precision, s.sentences_at_once) == ("fp32", 64))
    assert report.corpus.hours["fp32"] == pytest.approx(55_000 / speed.tokens_per_second / 3600)
    with gzip.open(tmp_path / "text.TXT.GZ", "wt") as file:
        file.write(line * 5000)
    assert bench(model_dir, tmp_path / "text.TXT.GZ", seconds=0.01).corpus.tokens == 55_000


def test_a_text_without_words_is_refused(model_dir, tmp_path):
    (tmp_path / "blank.txt").write_text("\n\n \n")
    with pytest.raises(FormatError, match=r"/blank\.txt: .*blank: 3"):
        bench(model_dir, tmp_path / "blank.txt", seconds=0.01)
