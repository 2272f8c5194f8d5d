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

WORK = {
    "embed": ("elmokit.embed.job", "embed_lines"),
    "vocab": ("elmokit.text.word_counter", "build_vocab"),
}
OUTPUTS = {"embed": "out.h5", "vocab": "vocab.txt"}
BEFORE = """
import h5py, importlib, os, resource
from pathlib import Path
import elmokit.embed.formats.hdf5  # Python can crash when it compiles a module without memory
module = importlib.import_module({module!r})
work = module.{name}
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
module.{name} = denied
"""
LIMITS = {
    "full disk": ("resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))", 1, "largest file size"),
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
        for output in OUTPUTS.values():
            (folder / "out" / output).write_bytes(b"old")
        yield folder


def run(command, folder, before):
    model = ("--model", folder / "model") if command == "embed" else ()
    output = folder / "out" / OUTPUTS[command]
    process = start_elmokit(
        command, folder / "text.txt", *model, "-o", output, "--overwrite", before=before,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    _, message = process.communicate(timeout=300)
    assert "Traceback" not in message, message
    return process.returncode, message


@pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")
@pytest.mark.parametrize(
    ("command", "denied"), [*(("embed", one) for one in LIMITS), ("vocab", "full disk")]
)
def test_what_the_system_denies_is_told_and_old_files_stay(command, denied, folder):
    if denied == "nobody's folder" and os.geteuid() != 0:
        pytest.skip("only root can become nobody")
    limit, code, told = LIMITS[denied]
    module, name = WORK[command]
    before = BEFORE.format(module=module, name=name, limit=limit)
    returned, message = run(command, folder, before)
    assert (returned, told in message) == (code, True), message
    assert (folder / "out" / OUTPUTS[command]).read_bytes() == b"old"
    left = {path.name for path in (folder / "out").iterdir()} - set(OUTPUTS.values())
    assert left <= {"out.h5.parts"}  # what is safe of it, for --resume
