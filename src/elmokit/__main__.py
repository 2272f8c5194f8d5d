"""`elmokit` and `python -m elmokit` (also `torchrun -m elmokit pretrain …`)."""

import signal


def main() -> None:
    """Import the command line, and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # Ctrl-C would end the imports with a traceback
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from elmokit.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
