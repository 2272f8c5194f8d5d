"""Date, machine and versions of a result."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch

import elmokit
from elmokit.bilm.device import pick_device
from elmokit.files.location import counted


def now() -> str:
    """Return date and time, as text."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def provenance(device: str) -> dict[str, str]:
    """Return date, hardware (with the GPU, if ``device`` is one) and versions, as text."""
    chosen = pick_device(device)
    gpu = f", {torch.cuda.get_device_name(chosen)}" if chosen.type == "cuda" else ""
    cores = counted(os.cpu_count() or 1, "core")
    threads = counted(torch.get_num_threads(), "thread")
    return {
        "date": now(),
        "hardware": f"{processor_name()}, {cores}, {threads}{gpu}",
        "versions": f"elmokit {elmokit.__version__}, Python {platform.python_version()}, "
        f"PyTorch {torch.__version__}, NumPy {version('numpy')}",
    }


def processor_name() -> str:
    """Return the processor's name, or its architecture if the name is unknown."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
