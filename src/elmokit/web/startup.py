"""What a server needs to start: its options, an address, task runs.

No heavy imports: `elmokit serve --help` reads the options.
"""

import ipaddress
import logging
import math
import re
import socket
from collections.abc import Collection
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from elmokit.errors import FormatError, InputError

if TYPE_CHECKING:
    from elmokit.tasks.runs.task_run import TaskRun

log = logging.getLogger(__name__)

_LONG_TEXTS = 256  # of a request
CHARACTERS_PER_WORD = 16
"""A text may have this many characters for each word that it may have."""
_BACKLOG = 1024


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Options of a server, as `elmokit serve` explains them.

    Those from ``layers`` on are for the HTTP API alone.
    """

    name: str = "elmokit"
    api_key: str | None = None
    allowed_hosts: Collection[str] = ()
    max_requests: int = 64
    """Requests that arrive, wait, are computed or answered; more are refused."""
    timeout_seconds: float = 30.0
    layers: str | int | None = None
    pooling: str | None = None
    normalize: bool = True
    """Scale pooled vectors to length 1, unless a request says otherwise."""
    state: str = "reset"
    """As in `Embedder.embed`, except "carry": an answer must not depend on other requests."""
    max_words: int = 2048
    max_texts: int = 4096
    """Texts of a request; they are computed in batches of ``batch_tokens``."""
    batch_tokens: int = 2048
    """Words and sentence boundaries that are computed together."""

    def __post_init__(self) -> None:
        if not 0 < self.timeout_seconds < math.inf:
            seconds = self.timeout_seconds
            raise InputError(f"`timeout_seconds` must be positive and finite, got {seconds}.")
        if self.api_key is not None and not re.fullmatch("[!-~]+", self.api_key):
            raise InputError(
                "The API key must be printable ASCII without spaces, and not empty: "
                "clients send it in a header."
            )

    @property
    def max_request_tokens(self) -> int:
        """Of words and sentence boundaries, whose vectors are in memory together."""
        return _LONG_TEXTS * (self.max_words + 2)

    @property
    def max_characters(self) -> int:
        return self.max_words * CHARACTERS_PER_WORD


def listen(host: str, port: int) -> socket.socket:
    """Return a bound socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        advice = "Give another --port (0: a free one) or --host."
        raise InputError(f"Cannot listen on {host}, port {port}: {error}. {advice}") from error
    # asyncio turns off Nagle's algorithm only for sockets that were made with the protocol's
    # number; with it, the body of an answer waits 40 ms until the client acknowledges the headers
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, listener.detach())


def url_of(host: str, listener: socket.socket, *, advice: str | None) -> str:
    """Return the URL of what listens on ``host``.

    With ``advice`` it asks for no key, and a warning says so if other machines can reach it.
    """
    port = listener.getsockname()[1]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    try:
        is_local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    if advice is not None and not is_local:
        log.warning("anyone who can reach %s may use it; %s", url, advice)
    return url


def load_task_run(run_dir: str | PathLike[str], *, device: str = "auto") -> "TaskRun":
    """Load a run with all of its static vectors: else each new word would read their file again."""
    from elmokit.tasks.runs.task_run import TaskRun
    from elmokit.vectors.vector_files import makes_vectors

    run = TaskRun.load(run_dir, device=device)
    if not run.reads_vectors:
        return run
    file = Path(run.metadata["vectors"]["path"])
    if file.is_file() and makes_vectors(file):  # also of words that it does not list
        log.warning("%s: the fastText model %s is read again for each new word", run_dir, file)
        return run
    try:
        run.keep_vectors()
    except (FileNotFoundError, FormatError) as error:
        log.warning("%s: new words get no static vector: %s", run_dir, error)
    return run
