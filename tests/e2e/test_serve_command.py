"""`elmokit serve`, asked by the clients that people use, and `explore`, as processes."""

import json
import os
import signal
import subprocess
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder

from ..builders.command_line import start_elmokit
from ..builders.live_server import is_listening, until

pytestmark = pytest.mark.e2e

TEXTS = ["I sat by the bank .", "배 를 타고 갔다 ."]
KEY = "a-key"


def start(shared, *arguments, key=KEY, before=""):
    """Start the command; return process and URL once it listens."""
    process = start_elmokit(
        "serve", "--model", shared / "model", "--port", 0, "--json", *arguments,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, before=before,
        env=os.environ | ({} if key is None else {"ELMOKIT_API_KEY": key}),
    )  # fmt: skip
    said = json.loads(process.stdout.readline())
    assert said["model"] == "model"
    return process, said["url"]


def ask(url, given=None):
    """Return the answer to a GET, or to what is posted."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    body = None if given is None else json.dumps(given).encode()
    request = urllib.request.Request(url, body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


@pytest.fixture(scope="module")
def url(shared):
    process, url = start(shared, "--task", f"mood={shared / 'run'}")
    with process:
        yield url
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.fixture(scope="module")
def expected(shared):
    vectors = Embedder.load(shared / "model").embed_sentences(TEXTS)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_openai(url, expected):
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{url}v1", api_key=KEY, max_retries=0) as client:
        for options in ({}, {"encoding_format": "float"}):
            answer = client.embeddings.create(model="model", input=TEXTS, **options)
            found = np.array([one.embedding for one in answer.data])
            assert np.abs(found - expected).max() < 1e-6
            assert [one.index for one in answer.data] == [0, 1]
            assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (11, 11)
        assert [one.id for one in client.models.list()] == ["model"]
        with pytest.raises(openai.NotFoundError, match="There is no model"):
            client.embeddings.create(model="text-embedding-3-small", input="a")
        with pytest.raises(openai.UnprocessableEntityError, match="dimensions") as refused:
            client.embeddings.create(model="model", input="a", dimensions=5)
        assert refused.value.param == "dimensions"
    with openai.OpenAI(base_url=f"{url}v1", api_key="wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError) as refused:
            client.embeddings.create(model="model", input="a")
        assert refused.value.code == "invalid_api_key"


def test_inference_client(url, expected):
    hub = pytest.importorskip("huggingface_hub")
    client = hub.InferenceClient(url, token=KEY)
    found = client.feature_extraction(TEXTS[0], normalize=True, truncate=True)
    assert np.abs(found - expected[:1]).max() < 1e-6
    with pytest.raises(hub.errors.HfHubHTTPError, match="422"):
        client.feature_extraction("")


def test_other_machines_without_a_key_are_warned_of(shared):
    process, url = start(shared, "--host", "0.0.0.0", key=None)
    with process:
        assert urlsplit(url).hostname == "0.0.0.0"
        ask(f"http://127.0.0.1:{urlsplit(url).port}/health")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert "--api-key" in process.stderr.read()


def test_a_signal_ends_it_after_the_answer_and_nothing_sent_is_printed(shared):
    process, url = start(shared)
    assert urlsplit(url).hostname == "127.0.0.1"
    texts = ["the bank of a river " * 80, "Zyxwv! <s>", "Zyxwv" * 40, "쀓 쀓 쀓"] * 50

    with process, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, f"{url}embed", {"inputs": texts})
        until(lambda: b'te_request_count{method="batch"} 1' in ask(f"{url}metrics"))
        process.send_signal(signal.SIGTERM)
        assert len(json.loads(asked.result())) == 200
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


def test_a_second_signal_ends_it_at_once(shared):
    process, url = start(
        shared,
        before="import time, elmokit.web.api.computations\n"
        "def compute(*_): print('computing', flush=True); time.sleep(60)\n"
        "elmokit.web.api.computations.Embedding.compute = compute\n",
    )  # fmt: skip
    with process, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, f"{url}embed", {"inputs": "I sat"})
        assert process.stdout.readline() == "computing\n"
        process.send_signal(signal.SIGINT)
        until(lambda: not is_listening(urlsplit(url).port))
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 128 + signal.SIGINT
        assert process.stderr.read() == ""
        assert isinstance(asked.exception(), OSError)


def test_explore_serves_until_it_is_interrupted(shared, tmp_path):
    runs = [tmp_path / name for name in ("a/x", "b/x", "c/x-1", "c/x-2")]
    for one in runs:
        one.mkdir(parents=True)
        (one / "metrics.jsonl").touch()
    options = (word for one in runs for word in ("--run", one))
    process = start_elmokit(
        "explore", "-m", shared / "model", "--port", 0, *options,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    url = next(line for line in process.stderr if line.startswith("http")).split()[0]
    assert urlsplit(url).hostname == "127.0.0.1"
    found = json.loads(ask(f"{url}explorer.json"))
    assert [entry["name"] for entry in found["models"]] == ["model"]
    assert [entry["name"] for entry in found["runs"]] == ["x", "x-2", "x-1", "x-2-2"]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert errors == ""
