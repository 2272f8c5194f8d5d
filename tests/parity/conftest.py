import pytest


@pytest.fixture(scope="session")
def weights_dir(tmp_path_factory: pytest.TempPathFactory):
    """Where weights that are not stored are written, once a session."""
    return tmp_path_factory.mktemp("weights")
