"""What the guide to clusters shows runs where Ray, or Spark and Java, are installed."""

import runpy
import shutil
import sys
import warnings

import numpy as np
import pytest

from .test_documents import ROOT, blocks
from .test_integrations_page import here  # noqa: F401

pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore")]
PAGE = "docs/guides/cluster.md"


def imported(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library, while it is imported
        pytest.importorskip("pandas", reason="Ray Data and Spark need pandas")
        return pytest.importorskip(name, reason=f"{name} is not installed")


def test_the_example_runs(here, capsys):  # noqa: F811
    ray = imported("ray")
    (code,) = blocks(PAGE, "python", all_blocks=True)
    ray.init(num_cpus=3, include_dashboard=False)
    try:
        exec(compile(code, PAGE, "exec"), {})
    finally:
        ray.shutdown()
    assert "average" in capsys.readouterr().out
    assert list((here / "vectors").glob("*.parquet"))


def test_a_data_frame_of_spark_gets_the_vectors(workplace, tmp_path, monkeypatch):
    sql = imported("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    import pyarrow as pa
    from pyarrow import parquet

    from elmokit.embed.embedder import Embedder

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    texts = (workplace / "text.txt").read_text(encoding="utf-8").splitlines()
    table = pa.table({"number": range(len(texts)), "text": texts})
    parquet.write_table(table, tmp_path / "texts.parquet")
    arguments = [tmp_path / "texts.parquet", tmp_path / "out", "--model", workplace / "model"]
    monkeypatch.setattr(sys, "argv", ["spark_embed.py", *map(str, arguments)])
    session = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = session.config("spark.driver.host", "127.0.0.1").getOrCreate()
    try:
        runpy.run_path(str(ROOT / "recipes/spark_embed.py"), run_name="__main__")
    finally:
        spark.stop()
    rows = parquet.read_table(tmp_path / "out").to_pylist()
    expected = Embedder.load(workplace / "model").embed(texts, layers="average")
    assert sorted(row["number"] for row in rows) == list(range(len(texts)))
    for row in rows:
        assert row["tokens"] == texts[row["number"]].split()
        np.testing.assert_array_equal(np.array(row["average"], np.float32), expected[row["number"]])
