"""Counts and durations for Prometheus, by the names of Text Embeddings Inference.

All are changed by the thread of the event loop only.
"""

from bisect import bisect_left
from collections import Counter, defaultdict

_SECONDS = tuple(1e-5 * 1.5**power for power in range(1, 36))
_COUNTS = tuple(float(2**power) for power in range(17))
_BOUNDS = {
    "te_request_duration": _SECONDS,
    "te_request_tokenization_duration": _SECONDS,
    "te_request_queue_duration": _SECONDS,
    "te_request_inference_duration": _SECONDS,
    "te_request_input_length": _COUNTS,
    "te_batch_next_size": _COUNTS,
    "te_batch_next_tokens": _COUNTS,
}
"""The last value of each interval of the histograms."""
_LABELS = {
    "te_request_count": "method",
    "te_request_success": "method",
    "te_request_failure": "err",
}


class Metrics:
    """What /metrics shows."""

    def __init__(self) -> None:
        self._counts = {name: Counter[str]() for name in _LABELS}
        self._intervals = {name: [0] * (len(bounds) + 1) for name, bounds in _BOUNDS.items()}
        self._sums = defaultdict[str, float](float)

    def count(self, name: str, label: str) -> None:
        """Add one to a counter."""
        self._counts[name][label] += 1

    def observe(self, name: str, value: float) -> None:
        """Add a value to a histogram: seconds, tokens or texts."""
        self._intervals[name][bisect_left(_BOUNDS[name], value)] += 1
        self._sums[name] += value

    def render(self, *, queue_size: int) -> str:
        """Return all in the text format of Prometheus."""
        lines = ["# TYPE te_queue_size gauge", f"te_queue_size {queue_size}"]
        for name, label in _LABELS.items():
            lines.append(f"# TYPE {name} counter")
            counts = sorted(self._counts[name].items())
            lines += (f'{name}{{{label}="{value}"}} {count}' for value, count in counts)
        for name, intervals in self._intervals.items():
            lines.append(f"# TYPE {name} histogram")
            total = 0
            for bound, count in zip((*_BOUNDS[name], None), intervals, strict=True):
                total += count
                shown = "+Inf" if bound is None else f"{bound:.6g}"
                lines.append(f'{name}_bucket{{le="{shown}"}} {total}')
            lines += (f"{name}_sum {self._sums[name]!r}", f"{name}_count {total}")
        return "\n".join(lines) + "\n"
