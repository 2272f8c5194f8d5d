import pytest

from elmokit import Embedder
from elmokit.web.api.routes import _SHOWN_ROUTES, Service, home_page
from elmokit.web.api.settings import ServerSettings

from ....builders.embedding_models import toy_model


@pytest.fixture
def server_routes():
    app = Service(Embedder(toy_model()), ServerSettings(name="toy")).app()
    return {f"{method} {route.path}" for route in app.routes for method in route.methods - {"HEAD"}}


def test_names_are_text_and_every_route_is_there():
    page = home_page("<b>&", url="http://here/", runs=["mood"])
    assert "<h1>&lt;b&gt;&amp;</h1>" in page
    assert "<b>" not in page
    assert "POST /predict/mood" in page


def test_every_route_is_shown_but_other_names_and_the_page_itself(server_routes):
    shown = {route for route, *_ in _SHOWN_ROUTES}
    assert shown <= server_routes
    assert server_routes - shown == {
        "GET /", "POST /", "POST /embeddings", "POST /predict/{run}", "GET /v1/models",
        "GET /v1/models/{model:path}",
    }  # fmt: skip
