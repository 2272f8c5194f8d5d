"""What the tests of all readers share."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Write text or bytes to a file and return its path."""

    def write(content, *, name="data.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


@pytest.fixture
def report():
    from elmokit.tasks.formats.reading import ExampleReport

    return ExampleReport()
