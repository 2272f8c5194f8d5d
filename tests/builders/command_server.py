"""A process that has imported what commands import, and forks for each of them.

Starting a process anew takes a second or more, most of it for PyTorch. `command_line.start_elmokit`
runs this file as a program whose standard input is a socket. A message has the command as JSON;
with it come standard input, output and error, and a pipe to which the process id and, at the end,
the exit code are written.
"""

import json
import os
import signal
import socket
import sys


def import_libraries() -> None:
    """Import everything heavy; `torch._dynamo` is what every optimizer imports."""
    import torch._dynamo  # noqa: F401


def wait_for_a_command() -> dict | None:
    """Return, in a new process with its own streams, what to run; at the end None, in this one."""
    channel = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
    while True:
        message, files, *_ = socket.recv_fds(channel, 1 << 20, 4)
        if not message:
            return None
        if os.fork() == 0:
            break
        for file in files:
            os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, report = files
    process = os.fork()
    if process == 0:
        os.close(report)
        channel.detach()
        for number, file in enumerate(streams):
            os.dup2(file, number)
            os.close(file)
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
        sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        return json.loads(message)
    for file in streams:
        os.close(file)
    os.write(report, f"{process}\n".encode())
    _, status = os.waitpid(process, 0)
    os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    import_libraries()
    if (given := wait_for_a_command()) is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(given["environment"])
        os.chdir(given["folder"])
        sys.argv = ["elmokit", *given["words"]]
        exec(given["code"], {"__name__": "__main__"})
