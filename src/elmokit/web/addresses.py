"""The addresses that a server listens on, and the names by which it may be called."""

import errno
import ipaddress
import logging
import socket
from urllib.parse import urlsplit

from elmokit.errors import InputError

log = logging.getLogger(__name__)


def is_own_host(given: str, *, host: str, port: int | None) -> bool:
    """Return whether a Host header names a server that listens on ``host``.

    Other sites can make a browser send requests here under a name of theirs, but not under ours.

    Args:
        given: The header.
        host: Address that the server listens on.
        port: Its port; None where another one may lead here, as in a container.
    """
    try:
        parts = urlsplit(f"//{given}")
        name, given_port = (parts.hostname or "").lower(), parts.port or 80
    except ValueError:
        return False
    if port is not None and given_port != port:
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


def url_of(host: str, port: int) -> str:
    """Return the URL of an address."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def cannot_listen(host: str, port: int, error: OSError | OverflowError) -> InputError:
    """Return what to say if an address cannot be listened on."""
    advice = "Give another address with --host."
    if getattr(error, "errno", None) == errno.EADDRINUSE:
        advice = "Another program uses that port: give another one with --port, or 0."
    return InputError(f"Cannot listen on {host}, port {port}: {error}. {advice}")
