"""Files that elmokit reads, and how tests damage them: seeded, by bytes and by JSON values."""

import copy
import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from elmokit.errors import ElmokitError

SLOW_SECONDS = 5.0
BYTES = (0, 1, 0x7F, 0x80, 0xFF)
VALUES = (
    None, True, False, -1, 0, 1, 2, 7, 10**9, 2**31, 2**63, 10**400, 0.5, 2.0, -0.0, 1e308,
    math.nan, math.inf, "", "x", "12", "none", "\ud800", "../../etc/passwd", "\0",
    [], {}, [[]], [None], [1, 2], {"x": 1}, ["a", "a"], json.loads("[" * 80 + "]" * 80),
)  # fmt: skip
CHARACTERS = (
    "\0", "\t", "\n", "\r", "\r\n", " ", "\x1c", "\x85", "\u2028", "\u3000", "\xa0", "\ufeff",
    "\u200b", "\xad", "\u0301", "\u0316", "\u1100", "\u1161", "\u11a8", "\u115f", "\u3131",
    "ㅋ", "강", "\uac01\u11a8", "\ud800", "\U0010ffff", "\U0001f469\u200d\U0001f4bb", "\u202e",
    "İ", "ß", "ﬁ", "½", "٣", "“", "…", "-LRB-", '"', "'", ",", ";", "(", ")", "[", "]", "{",
    "}", "|", "*", "_", "-", "#", "+", "=", ".", "0", "-1", "1e999", "nan", "9" * 400, "B-",
    "I-X", "O", "null", "true", "<S>", "<UNK>",
)  # fmt: skip


@dataclass
class Target:
    """Files of one kind in a directory, and the function that reads them."""

    name: str
    directory: Path
    read: Callable[[], object]
    weights: dict[str, int] = field(default_factory=dict)
    """How often a file is damaged, by name; default: 1."""

    def __post_init__(self) -> None:
        paths = (path for path in sorted(self.directory.rglob("*")) if path.is_file())
        self.files = {
            path.relative_to(self.directory).as_posix(): path.read_bytes() for path in paths
        }

    def attempt(self, seed: int) -> str:
        """Damage one file, read, restore; return "read", "refused" or what should not be."""
        rng = random.Random(f"{self.name} {seed}")
        names = list(self.files)
        name = rng.choices(names, [self.weights.get(name, 1) for name in names])[0]
        path = self.directory / name
        path.write_bytes(damaged(self.files[name], rng, is_json=name.endswith(".json")))
        started = time.process_time()  # a busy machine is no hang
        try:
            self.read()
            outcome = "read"
        except ElmokitError as error:
            outcome = "refused" if str(error).strip() else f"{type(error).__name__} without words"
        except OSError as error:
            is_named = error.filename is not None or error.errno is None  # ours have no number
            outcome = "refused" if is_named else f"{error!r:.200} names no file"
        except Exception as error:
            outcome = f"{type(error).__name__}: {error!s:.200}"
        finally:
            for other, content in self.files.items():  # reading may remove what it cannot use
                (self.directory / other).parent.mkdir(parents=True, exist_ok=True)
                (self.directory / other).write_bytes(content)
        if (seconds := time.process_time() - started) > SLOW_SECONDS:
            outcome = f"{seconds:.1f} seconds, {outcome}"
        return outcome


def damaged(content: bytes, rng: random.Random, *, is_json: bool) -> bytes:
    """Return the content with one to four changes."""
    if is_json and rng.random() < 0.8:
        data = json.loads(content)
        for _ in range(rng.choice((1, 1, 1, 2))):
            data = _with_other_value(data, rng)
        return json.dumps(data).encode()
    if rng.random() < 0.5 and (text := _text(content)) is not None:
        for _ in range(rng.choice((1, 1, 2, 5))):
            text = _with_other_characters(text, rng)
        return text.encode("utf-8", "surrogatepass")
    data = bytearray(content)
    kind = rng.random()
    if kind < 0.1:
        return bytes(data[: rng.randrange(len(data) + 1)])
    if kind < 0.15:
        at = rng.randrange(len(data) + 1)
        return bytes(data[:at]) + rng.randbytes(rng.randrange(1, 20)) + bytes(data[at:])
    for _ in range(rng.choice((1, 1, 2, 4))):
        if data:
            # headers are where structure is
            end = min(len(data), 2048) if rng.random() < 0.6 else len(data)
            data[rng.randrange(end)] = rng.choice((*BYTES, rng.randrange(256)))
    return bytes(data)


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _with_other_characters(text: str, rng: random.Random) -> str:
    """Insert, repeat, replace or remove something, or exchange two lines."""
    at = rng.randrange(len(text) + 1)
    end = min(len(text), at + rng.choice((1, 1, 2, 8, 40)))
    action = rng.random()
    if action < 0.4:
        piece = rng.choice(CHARACTERS) * rng.choice((1, 1, 1, 2, 60))
        return text[:at] + piece + text[at if rng.random() < 0.5 else end :]
    if action < 0.6:
        return text[:at] + text[end:]
    if action < 0.8:
        return text[:end] + text[at:end] * rng.choice((1, 1, 30)) + text[end:]
    lines = text.split("\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def _with_other_value(data: object, rng: random.Random) -> object:
    places = list(_places(data))
    if not places:
        return rng.choice(VALUES)
    data = copy.deepcopy(data)
    table: object = data
    *parents, last = rng.choice(places)
    for parent in parents:
        table = table[parent]  # pyright: ignore
    action = rng.random()
    if action < 0.15:
        del table[last]  # pyright: ignore
    elif action < 0.2 and isinstance(table, dict):
        table["unheard_of"] = rng.choice(VALUES)
    else:
        table[last] = rng.choice(VALUES)  # pyright: ignore
    return data


def _places(data: object, path: tuple = ()) -> Iterator[tuple]:
    keys = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield (*path, key)
        yield from _places(data[key], (*path, key))  # pyright: ignore


def attack(target: Target, *, first: int, seconds=0.0, least=0) -> tuple[int, Counter[str]]:
    """Damage and read; return the number of inputs and their outcomes.

    It goes on for ``seconds`` and ``least`` inputs, and for up to 50 until one is refused.
    """
    outcomes: Counter[str] = Counter()
    deadline, seed = time.monotonic() + seconds, first
    while (
        time.monotonic() < deadline
        or seed < first + least
        or (not outcomes["refused"] and seed < first + 50)
    ):
        outcomes[target.attempt(seed)] += 1
        seed += 1
    return seed - first, outcomes
