from pathlib import Path
from types import SimpleNamespace

import pytest

from elmokit import wording
from elmokit.wording import quoted


@pytest.mark.parametrize(
    ("system", "path", "word"),
    [
        ("posix", "my run", "'my run'"),
        ("posix", "runs/한국어", "'runs/한국어'"),
        ("nt", "C:\\runs\\one", "C:\\runs\\one"),
        ("nt", "C:\\my runs", '"C:\\my runs"'),
    ],
)
def test_paths_in_commands_are_quoted_for_the_shell(system, path, word, monkeypatch):
    monkeypatch.setattr(wording, "os", SimpleNamespace(name=system))
    assert quoted(Path(path)) == word
