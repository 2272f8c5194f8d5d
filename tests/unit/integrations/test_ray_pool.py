"""Connecting to a Ray cluster; `test_ray_data` has pools that work."""

import os
import warnings
from types import SimpleNamespace

import pytest

from elmokit.embed.options import EmbedOptions
from elmokit.errors import InputError

from ...builders.command_line import free_port
from ...builders.embedding_models import toy_model

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Ray, while it is imported
    ray = pytest.importorskip("ray", reason="ray is not installed")
    from elmokit.integrations import ray_pool
    from elmokit.integrations.ray_pool import RayPool, connect


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_an_address_where_nobody_answers_is_named_at_once(form):
    address = form.format(free_port())
    with pytest.raises(InputError, match=rf"{address}.*--address"):
        connect(address)
    assert not ray.is_initialized()


@pytest.mark.e2e
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_of_its_own_has_room_for_all_workers(tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    pytest.importorskip("pandas", reason="Ray Data needs pandas")
    from elmokit.integrations.ray_data import RayLines

    one_core = SimpleNamespace(cpu_count=lambda: 1, environ=os.environ)
    monkeypatch.setattr(ray_pool, "os", one_core)
    count = 2
    with RayLines(toy_model(), num_actors=count) as lines:
        assert ray.cluster_resources()["CPU"] == count
        futures = [lines.pool.submit(["the bank"]) for _ in range(count)]
        assert [future.result(timeout=120).words for future in futures] == [
            [["the", "bank"]]
        ] * count
    assert not ray.is_initialized()


@pytest.mark.e2e
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_of_its_own_ends_when_it_is_of_no_use(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(InputError, match=r"need 1e\+06 GPUs"):
        connect(num_cpus=1, num_gpus=1e6)
    assert not ray.is_initialized()
    monkeypatch.setattr(RayPool, "_warn_of_few", None)
    with pytest.raises(TypeError):
        RayPool(1, list, num_cpus=1)
    assert not ray.is_initialized()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "int4"}, "must be 'fp32'"),
        ({"options": EmbedOptions(layers="bottom")}, "`layers` must be"),
        ({"options": EmbedOptions(dtype="float64")}, "`dtype` must be"),
    ],
)
def test_options_are_checked_before_connecting(settings, message):
    pytest.importorskip("pandas", reason="Ray Data needs pandas")
    from elmokit.integrations.ray_data import RayLines

    with pytest.raises(InputError, match=message):
        RayLines(toy_model(), address="nowhere", **settings)
    assert not ray.is_initialized()
