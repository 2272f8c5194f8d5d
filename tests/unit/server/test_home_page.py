from elmokit.server.home_page import ROUTES, home_page


def test_names_are_text_and_every_route_is_there():
    page = home_page("<b>&", url="http://here/", runs=["mood"])
    assert "<h1>&lt;b&gt;&amp;</h1>" in page
    assert "<b>" not in page
    assert all(route in page for route, *_ in ROUTES)
    assert "POST /predict/mood" in page
