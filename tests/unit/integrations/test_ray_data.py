"""Embedding on a Ray cluster of this machine gives the files of one process."""

import os
import signal
import warnings

import pytest

from elmokit.embed.embedder import Embedder
from elmokit.embed.options import EmbedOptions

from ...builders.embedding_models import embed_files, random_sentences, toy_model
from ...builders.training_models import write_text

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Ray, while it is imported
    ray = pytest.importorskip("ray", reason="ray is not installed")
    pytest.importorskip("pandas", reason="Ray Data needs pandas")
    from elmokit.embed.job import embed_lines
    from elmokit.integrations.ray_data import RayLineEmbedder

pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    os.environ.pop("RAY_ADDRESS", None)
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def model():
    return toy_model(vocab=True, warm_text=("the bank", "a river"))


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text.txt", [*random_sentences(300), []])


@pytest.mark.parametrize(
    ("suffix", "settings"),
    [
        ("h5", {}),
        ("parquet", {"layers": "top", "dtype": "float16", "state": "warm"}),
        ("npz", {"pooling": "sif"}),
    ],
)
def test_two_actors_write_the_file_of_one_process(model, text, tmp_path, suffix, settings):
    one, two = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    embed_files(Embedder(model), text, one, **settings)
    options = EmbedOptions(batch_tokens=16, **settings)
    with RayLineEmbedder(model, options, num_actors=2) as lines:
        report = embed_lines(lines, text, two, options)
    assert two.read_bytes() == one.read_bytes()
    assert report.sentences == 301


def test_a_killed_actor_loses_nothing(model, text, tmp_path):
    embed_files(Embedder(model), text, tmp_path / "one.h5")
    options, killed = EmbedOptions(batch_tokens=16), []
    with RayLineEmbedder(model, options, num_actors=2) as lines:
        first = lines.actors[0]

        def kill(*_):
            if not killed:
                killed.append(ray.get(first.__ray_call__.remote(lambda actor: os.getpid())))
                os.kill(killed[0], signal.SIGKILL)

        embed_lines(lines, text, tmp_path / "two.h5", options, on_progress=kill)
        again = ray.get(first.__ray_call__.remote(lambda actor: os.getpid()))
    assert again != killed[0]
    assert (tmp_path / "two.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()
