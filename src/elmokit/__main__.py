"""`python -m elmokit`: the same as the `elmokit` command (and `torchrun -m elmokit pretrain …`)."""

from elmokit.cli import main

if __name__ == "__main__":
    main()
