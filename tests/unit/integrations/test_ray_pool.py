"""Connecting to a Ray cluster; `test_ray_data` has pools that work."""

import socket
import warnings

import pytest

from elmokit.errors import InputError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Ray, while it is imported
    ray = pytest.importorskip("ray", reason="ray is not installed")
    from elmokit.integrations.ray_pool import connect


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_an_address_where_nobody_answers_is_named_at_once(form):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = form.format(server.getsockname()[1])
    with pytest.raises(InputError, match=rf"{address}.*--address"):
        connect(address)
    assert not ray.is_initialized()
