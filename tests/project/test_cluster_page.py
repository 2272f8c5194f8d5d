"""What the guide to clusters shows runs where Ray, or Spark and Java, are installed."""

import warnings

import pytest

from .test_documents import blocks
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
