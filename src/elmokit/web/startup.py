"""What both servers need to start: an address, the names they answer to, and task runs."""

import errno
import ipaddress
import logging
import socket
from os import PathLike
from pathlib import Path
from urllib.parse import urlsplit

from elmokit.errors import FormatError, InputError
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.vectors.vector_files import makes_vectors

log = logging.getLogger(__name__)

_BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """Return a bound socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        advice = "Give another address with --host."
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            advice = "Another program uses that port: give another one with --port, or 0."
        raise InputError(f"Cannot listen on {host}, port {port}: {error}. {advice}") from error
    # asyncio turns off Nagle's algorithm only for sockets that were made with the protocol's
    # number; with it, the body of an answer waits 40 ms until the client acknowledges the headers
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, listener.detach())


def url_of(host: str, listener: socket.socket) -> str:
    """Return the URL of what listens on ``host``."""
    port = listener.getsockname()[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def is_own_host(header: str, *, host: str, port: int | None) -> bool:
    """Return whether a Host header names a server that listens on ``host``.

    Other sites can make a browser send requests here under a name of theirs, but not under ours.
    ``port`` is None where another port may lead here, as in a container.
    """
    try:
        parts = urlsplit(f"//{header}")
        name, header_port = (parts.hostname or "").lower(), parts.port or 80
    except ValueError:
        return False
    if port is not None and header_port != port:
        return False
    if name in ("localhost", host.lower(), socket.gethostname().lower()):
        return True
    try:  # a name that leads here by DNS could be anyone's; a number could not
        address = ipaddress.ip_address(name)
        return address.is_loopback or not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def warn_if_reachable(host: str, url: str, *, advice: str) -> None:
    """Warn if other machines can reach a server that listens on ``host`` and asks for no key."""
    try:
        is_local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    if not is_local:
        log.warning("anyone who can reach %s may use it; %s", url, advice)


def load_task_run(run_dir: str | PathLike[str], *, device: str = "auto") -> TaskRun:
    """Load a run with all of its static vectors: else each new word would read their file again.

    A fastText model is still read for each new word, with a warning: it makes vectors of words that
    it does not list. If the vectors are gone, or those of another file, a warning says so, and
    words that are new to the run get none.
    """
    run = TaskRun.load(run_dir, device=device)
    if not run.reads_vectors:
        return run
    file = Path(run.metadata["vectors"]["path"])
    if file.is_file() and makes_vectors(file):
        log.warning("%s: the fastText model %s is read again for each new word", run_dir, file)
        return run
    try:
        run.keep_vectors()
    except (FileNotFoundError, FormatError) as error:
        log.warning("%s: new words get no static vector: %s", run_dir, error)
    return run
