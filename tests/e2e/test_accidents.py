"""A system that denies something: a clear error, an exit code, and old files as they were."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ..builders.command_line import start_elmokit
from ..builders.embedding_models import toy_model

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(os.name != "posix", reason="needs limits")]

BEFORE = """
import h5py, os, resource
from pathlib import Path
import elmokit.embed.formats.hdf5  # Python can crash when it compiles a module without memory
from elmokit.embed import job
work = job.embed_lines
def take_all():  # what the process has got already and does not use
    taken = []
    try:
        while True:
            taken.append(bytes(1 << 15))
    except MemoryError:
        return taken
def denied(*arguments, **options):
    {limit}
    return work(*arguments, **options)
job.embed_lines = denied
"""
LIMITS = {
    "full disk": ("resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))", 1, "File too large"),
    "no descriptors": (
        "resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir('/proc/self/fd')) - 1, 4096))",
        1, "Too many open files",
    ),
    "no memory": (
        "used = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize();"
        " resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 18), -1)); hoard = take_all()",
        1, "memory",  # "out of memory", or "Cannot allocate memory" where the system says so
    ),
    "nobody's folder": ("os.setgid(65534); os.setuid(65534)", 2, "Permission denied"),
}  # fmt: skip
"""What is denied -> code that does it when the work begins, exit code, a part of the message."""


@pytest.fixture
def folder():
    """A directory that other users can read, with a model, a text and an old output."""
    with tempfile.TemporaryDirectory(prefix="elmokit-accidents-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        toy_model().save(folder / "model")
        (folder / "text.txt").write_text("I sat by the bank of a river .\n" * 300)
        (folder / "out").mkdir()
        (folder / "out" / "out.h5").write_bytes(b"old")
        yield folder


@pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")
@pytest.mark.parametrize("denied", LIMITS)
def test_what_the_system_denies_is_told_and_old_files_stay(denied, folder):
    if denied == "nobody's folder" and os.geteuid() != 0:
        pytest.skip("only root can become nobody")
    limit, code, told = LIMITS[denied]
    process = start_elmokit(
        "embed", folder / "text.txt", "--model", folder / "model", "-o", folder / "out/out.h5",
        "--overwrite", before=BEFORE.format(limit=limit), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    _, message = process.communicate(timeout=300)
    assert (process.returncode, told in message) == (code, True), message
    assert "Traceback" not in message
    assert (folder / "out/out.h5").read_bytes() == b"old"
    left = {path.name for path in (folder / "out").iterdir()}
    assert left <= {"out.h5", "out.h5.parts"}  # what is safe of it, for --resume
