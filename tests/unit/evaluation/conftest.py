import pytest


@pytest.fixture(scope="module")
def model():
    from ...builders.training_models import toy_model

    return toy_model()
