"""The examples of the guides to other libraries and to clusters run where these are installed."""

import re
import warnings

import pytest

from .test_documents import FENCE, ROOT, blocks

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries
MODULES = {"scikit-learn": "sklearn", "sentence-transformers": "sentence_transformers",
           "spaCy": "spacy"}  # fmt: skip


def examples():
    text = (ROOT / "docs/guides/integrations.md").read_text(encoding="utf-8")
    return [
        (re.search(r"where (\S+) is", match["note"])[1], match["code"])
        for match in FENCE.finditer(text)
        if match["language"] == "python"
    ]


@pytest.fixture
def here(workplace, tmp_path, monkeypatch):
    for path in workplace.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("name", "code"), examples(), ids=[name for name, _ in examples()])
def test_the_example_runs(name, code, here, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library, while it is imported
        pytest.importorskip(MODULES.get(name, name), reason=f"{name} is not installed")
        exec(compile(code, name, "exec"), {})
    assert capsys.readouterr().out or name in {"sentence-transformers", "transformers"}


@pytest.mark.e2e
def test_the_example_of_clusters_runs(here, capsys):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    pytest.importorskip("pandas", reason="Ray Data needs pandas")
    (code,) = blocks("docs/guides/cluster.md", "python", all_blocks=True)
    ray.init(num_cpus=3, include_dashboard=False)
    try:
        exec(compile(code, "cluster.md", "exec"), {})
    finally:
        ray.shutdown()
    assert "average" in capsys.readouterr().out
    assert list((here / "vectors").glob("*.parquet"))
