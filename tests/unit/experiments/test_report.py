import pytest

from elmokit.experiments import report
from elmokit.experiments.comparison import Findings
from elmokit.experiments.report import PLOTS

from .test_tables import findings

PNG = b"\x89PNG"


@pytest.mark.parametrize("plot", PLOTS.values())
def test_a_picture_is_drawn(tmp_path, plot):
    pytest.importorskip("matplotlib")
    path = tmp_path / "plot.png"
    assert plot(findings(), path)
    assert path.read_bytes().startswith(PNG)


def test_the_axis_of_a_curve_names_the_shares_that_were_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    figures = []
    monkeypatch.setattr(report, "write_picture", lambda figure, path: figures.append(figure))
    PLOTS["curves"](findings(), tmp_path / "plot.png")
    for axes in figures[0].axes:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "10", "100"]
        assert list(axes.get_xticks(minor=True)) == []


@pytest.mark.parametrize("plot", PLOTS.values())
def test_nothing_is_drawn_of_nothing(tmp_path, plot):
    pytest.importorskip("matplotlib")
    nothing = Findings([(run, None) for run, _ in findings().runs], "static")
    assert not plot(nothing, tmp_path / "plot.png")
    assert list(tmp_path.iterdir()) == []
