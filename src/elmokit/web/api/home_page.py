"""The page that a browser shows at the server's address: what is served, and how to ask for it."""

from collections.abc import Iterable
from html import escape

ROUTES = (
    ("POST /embed", "a vector per text", "텍스트마다 벡터 하나"),
    ("POST /embed_all", "a vector per word", "단어마다 벡터 하나"),
    ("POST /tokenize", "the words of a text", "텍스트를 나눈 단어"),
    ("POST /v1/embeddings", "the API of OpenAI", "OpenAI의 API"),
    ("GET /info", "the model and the limits", "모델과 제한"),
    ("GET /health", "whether the server is up", "서버의 상태"),
    ("GET /metrics", "counts and durations", "요청 수와 시간"),
)
_PREDICT = "the answer of a task model", "과제 모델의 답"
_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}td{padding:.1rem 1rem .1rem 0}pre{overflow-x:auto}"
)


def home_page(name: str, *, url: str, runs: Iterable[str]) -> str:
    """Return the page as HTML, in English and Korean.

    Args:
        name: Of the model, as clients call it.
        url: The server's address as the browser knows it, with a slash at its end.
        runs: Names of the task models.
    """
    routes = [*ROUTES, *((f"POST /predict/{run}", *_PREDICT) for run in runs)]
    rows = "".join(
        f"<tr><td><code>{escape(route)}</code></td><td>{english}</td><td lang=ko>{korean}</td></tr>"
        for route, english, korean in routes
    )
    example = f'curl {url}embed --json \'{{"inputs": "I sat by the bank ."}}\''
    return (
        '<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width='
        f'device-width"><title>{escape(name)} – elmokit</title><style>{_STYLE}</style>'
        f"<h1>{escape(name)}</h1><p>An ELMo model, served by elmokit. "
        "<span lang=ko>elmokit이 제공하는 ELMo 모델입니다.</span></p>"
        f"<table>{rows}</table><pre>{escape(example)}</pre>"
        "<p>To look inside the model, run <code>elmokit explore</code>. "
        "<span lang=ko>모델 내부를 살펴보려면 <code>elmokit explore</code>를 실행하십시오.</span>"
        "</p></html>"
    )
