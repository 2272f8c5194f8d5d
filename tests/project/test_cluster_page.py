"""The examples of the guide to clusters run where Ray is installed."""

import warnings

import pytest

from .test_documents import FENCE, ROOT
from .test_integrations_page import here  # noqa: F401

PAGE = "docs/guides/cluster.md"


@pytest.mark.e2e
@pytest.mark.filterwarnings("ignore")
def test_the_example_runs(here, capsys):  # noqa: F811
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray, while it is imported
        ray = pytest.importorskip("ray", reason="ray is not installed")
        pytest.importorskip("pandas", reason="Ray Data needs pandas")
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    (code,) = (m["code"] for m in FENCE.finditer(text) if m["language"] == "python")
    ray.init(num_cpus=3, include_dashboard=False)
    try:
        exec(compile(code, PAGE, "exec"), {})
    finally:
        ray.shutdown()
    assert "average" in capsys.readouterr().out
    assert list((here / "vectors").glob("*.parquet"))
