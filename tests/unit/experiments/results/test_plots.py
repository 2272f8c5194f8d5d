import pytest

from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.plots import plot_curves, plot_mixes

from .test_tables import findings

PNG = b"\x89PNG"


@pytest.mark.parametrize("plot", [plot_curves, plot_mixes])
def test_a_picture_is_drawn(tmp_path, plot):
    pytest.importorskip("matplotlib")
    path = tmp_path / "plot.png"
    assert plot(findings(), path)
    assert path.read_bytes().startswith(PNG)


@pytest.mark.parametrize("plot", [plot_curves, plot_mixes])
def test_nothing_is_drawn_of_nothing(tmp_path, plot):
    pytest.importorskip("matplotlib")
    nothing = Findings([(run, None) for run, _ in findings().runs], "static")
    assert not plot(nothing, tmp_path / "plot.png")
    assert list(tmp_path.iterdir()) == []
