"""The recipe for Spark on a local Spark; skipped where it or Java is not installed."""

import runpy
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def spark(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Spark, while it is imported
        sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
        pytest.importorskip("pandas", reason="pandas, which pyspark needs, is not installed")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


def test_a_data_frame_gets_the_vectors(spark, workplace, tmp_path, monkeypatch):
    import pyarrow as pa
    from pyarrow import parquet

    from elmokit.embed.embedder import Embedder

    texts = (workplace / "text.txt").read_text(encoding="utf-8").splitlines()
    table = pa.table({"number": range(len(texts)), "text": texts})
    parquet.write_table(table, tmp_path / "texts.parquet")
    arguments = [tmp_path / "texts.parquet", tmp_path / "out", "--model", workplace / "model"]
    monkeypatch.setattr(sys, "argv", ["spark_embed.py", *map(str, arguments)])
    runpy.run_path(str(ROOT / "recipes/spark_embed.py"), run_name="__main__")
    rows = parquet.read_table(tmp_path / "out").to_pylist()
    expected = Embedder.load(workplace / "model").embed(texts, layers="average")
    assert sorted(row["number"] for row in rows) == list(range(len(texts)))
    for row in rows:
        assert row["tokens"] == texts[row["number"]].split()
        np.testing.assert_array_equal(np.array(row["average"], np.float32), expected[row["number"]])
