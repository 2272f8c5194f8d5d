import pytest


@pytest.fixture
def report():
    from elmokit.tasks.formats.reading import ExampleReport

    return ExampleReport()
