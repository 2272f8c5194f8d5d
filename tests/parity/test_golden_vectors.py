"""The packaged models give the vectors that they gave before (`recipes/golden_vectors.py`)."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from elmokit.kernels.library import load_kernels

RECIPE = runpy.run_path(str(Path(__file__).resolve().parents[2] / "recipes/golden_vectors.py"))
TOLERANCES = {"fp32": 5e-6, "bf16": 0.01, "int8": 0.05}
"""Processors differ by rounding; a layer or direction that is mixed up changes whole numbers."""


@pytest.mark.parametrize("precision", RECIPE["PRECISIONS"])
@pytest.mark.parametrize("name", ["en", "ko"])
def test_vectors_are_those_of_the_last_release(name, precision):
    if precision != "fp32" and load_kernels() is None:
        pytest.skip("no compiled kernels, which bf16 and int8 need")
    with np.load(RECIPE["GOLDEN"]) as golden:
        expected = golden[f"{name}-{precision}"]
    np.testing.assert_allclose(
        RECIPE["sketch"](name, precision), expected, atol=TOLERANCES[precision], rtol=0
    )
