"""Forked processes, which lack the threads of their parent."""

import functools
import os

import torch


@functools.cache
def use_one_thread_after_a_fork() -> None:
    """Keep forked processes from waiting for threads of OpenMP, which only their parent has."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=functools.partial(torch.set_num_threads, 1))
