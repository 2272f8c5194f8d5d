"""Counts and durations for Prometheus, by the names of Text Embeddings Inference.

All are changed by the thread of the event loop only.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

_SECONDS = tuple(1e-5 * 1.5**power for power in range(1, 36))
_COUNTS = tuple(float(2**power) for power in range(17))


class _Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts = bounds, [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            total += count
            shown = bound if isinstance(bound, str) else f"{bound:.6g}"
            yield f'{name}_bucket{{le="{shown}"}} {total}'
        yield f"{name}_sum {self.sum!r}"
        yield f"{name}_count {total}"


class Metrics:
    """What /metrics shows."""

    def __init__(self) -> None:
        self._requests = {
            name: Counter[str]() for name in ("te_request_count", "te_request_success")
        }
        self._failures = Counter[str]()
        self._histograms = {
            **{
                f"te_request_{name}duration": _Histogram(_SECONDS)
                for name in ("", "tokenization_", "queue_", "inference_")
            },
            "te_request_input_length": _Histogram(_COUNTS),
            "te_batch_next_size": _Histogram(_COUNTS),
            "te_batch_next_tokens": _Histogram(_COUNTS),
        }

    def count(self, *, texts: int | None, success: bool = False) -> None:
        """Count a request that arrived, or one that was answered; None texts: a single one."""
        name = "te_request_success" if success else "te_request_count"
        self._requests[name]["single" if texts is None else "batch"] += 1

    def fail(self, kind: str) -> None:
        """Count a request that was refused or failed."""
        self._failures[kind] += 1

    def observe(self, name: str, value: float) -> None:
        """Add a value to a histogram: seconds, tokens or texts."""
        self._histograms[name].add(value)

    def render(self, *, queue_size: int) -> str:
        """Return all in the text format of Prometheus."""
        lines = ["# TYPE te_queue_size gauge", f"te_queue_size {queue_size}"]
        labelled = {name: ("method", counts) for name, counts in self._requests.items()}
        labelled["te_request_failure"] = ("err", self._failures)
        for name, (label, counts) in labelled.items():
            lines.append(f"# TYPE {name} counter")
            lines += (f'{name}{{{label}="{value}"}} {n}' for value, n in sorted(counts.items()))
        for name, histogram in self._histograms.items():
            lines += (f"# TYPE {name} histogram", *histogram.lines(name))
        return "\n".join(lines) + "\n"
