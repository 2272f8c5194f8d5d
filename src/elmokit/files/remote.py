"""Files in object storage and elsewhere, read by address (``s3://BUCKET/KEY``), through fsspec.

fsspec comes with PyTorch; the driver of a storage (s3fs, gcsfs, …) is a package of its own.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from elmokit.errors import InputError

StrPath = str | os.PathLike[str]
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(/?[^/].*)", re.DOTALL)
_STORAGES = frozenset(
    ["s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci", "http", "https", "hf", "memory"]
)
"""fsspec knows many more, some of which read any local file or address that a text names."""


def as_address(path: StrPath) -> str | None:
    """Return the address that a path is, if it is one: ``pathlib`` makes one slash of two."""
    match = _ADDRESS.fullmatch(os.fspath(path))
    if match is None or os.path.exists(path) or os.path.isdir(f"{match[1]}:"):
        return None
    address = f"{match[1]}://{match[2]}"
    _check_storage(address)
    return address


def _check_storage(address: str) -> None:
    kind = address.partition("://")[0]
    if kind not in _STORAGES or "::" in address:
        raise InputError(
            f"{address}: no address of a storage that is read: {', '.join(sorted(_STORAGES))}, as "
            "in s3://BUCKET/KEY, and without `::`. Give a path without file://, and one that "
            "begins like an address after ./ ."
        )


@dataclass(frozen=True)
class RemoteFile:
    """A file by address, with what readers use of `pathlib.Path`."""

    address: str

    def __str__(self) -> str:
        return self.address

    def __fspath__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        """Last part of the address."""
        return PurePosixPath(self.address).name

    @property
    def suffix(self) -> str:
        """Suffix of the name, such as ``.gz``."""
        return PurePosixPath(self.address).suffix

    @property
    def num_bytes(self) -> int | None:
        """Size; None if the server does not tell."""
        return self._asked("size")

    def open(self, mode: str = "rb") -> Any:
        """Open for sequential reading, read ahead in blocks."""
        return self._asked("open", mode)

    def is_file(self) -> bool:
        """Whether there is such a file."""
        return self._asked("isfile")

    def matches(self) -> list["RemoteFile"]:
        """Return this file, the files below this folder, or those that match this pattern.

        Hidden files below a folder are left out.
        """
        if self.is_file():
            return [self]
        system, path = _system(self.address)
        if self._asked("isdir"):
            names = [name for name in self._asked("find") if "/." not in name[len(path) :]]
        else:
            names = [name for name in self._asked("glob") if system.isfile(name)]
        return [RemoteFile(system.unstrip_protocol(name)) for name in sorted(names)]

    def _asked(self, what: str, *arguments: str) -> Any:
        """Call the driver with the address and arguments."""
        with _named_errors(self.address):
            system, path = _system(self.address)
            return getattr(system, what)(path, *arguments)


AnyFile = Path | RemoteFile


def as_file(path: StrPath) -> AnyFile:
    """Return a local path, or what an address stands for."""
    address = as_address(path)
    return Path(path) if address is None else RemoteFile(address)


@cache
def _system(address: str) -> tuple[Any, str]:
    """Return the driver and the address as it takes it."""
    from fsspec.core import url_to_fs

    _check_storage(address)  # also the names that a storage lists: `::` would lead elsewhere
    with _named_errors(address):
        return url_to_fs(address)


@contextmanager
def _named_errors(address: str) -> Iterator[None]:
    """Name the address in a driver's own errors, such as one that is not installed."""
    try:
        yield
    except (OSError, InputError):
        raise
    except ImportError as error:
        advice = "Install its driver with pip, such as s3fs for s3:// or gcsfs for gs://."
        raise InputError(f"{address}: {error}. {advice}") from error
    except Exception as error:
        raise InputError(f"{address}: {type(error).__name__}: {error}") from error
