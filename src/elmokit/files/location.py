"""Former place of `elmokit.wording`."""

from elmokit.wording import Location, counted, printable, quoted, shown

__all__ = ["Location", "counted", "printable", "quoted", "shown"]
