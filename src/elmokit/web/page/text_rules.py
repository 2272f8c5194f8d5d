"""Normalization, the tokenizer ``simple`` and alignment, as data for their JavaScript versions."""

from typing import Any

from elmokit.text.alignment import MAX_ALTERED, cluster_pattern
from elmokit.text.normalization import plain_1_rules
from elmokit.text.tokenizers import simple_data
from elmokit.text.tokenizers.simple import SimpleTokenizer, patterns
from elmokit.web.page.javascript_patterns import spaces, to_javascript

RULES_NAME = "tokenizer-rules.json"


def text_rules() -> dict[str, Any]:
    """Return the word lists, and the patterns in JavaScript's syntax."""
    plain = plain_1_rules()
    return {
        "spaces": spaces(),
        "normalization": {
            "signs": dict(plain.signs),
            "joiners": to_javascript(plain.joiners),
            "two_quotes": to_javascript(plain.two_quotes),
            "bracket": to_javascript(plain.bracket),
            "brackets": dict(plain.brackets),
            "escape": to_javascript(plain.escape),
        },
        "simple": {
            "version": SimpleTokenizer.version,
            "patterns": {
                name: to_javascript(pattern) for name, pattern in patterns()._asdict().items()
            },
            "titles": sorted(simple_data.TITLES),
            "references": sorted(simple_data.REFERENCES),
            "abbreviations": sorted(simple_data.ABBREVIATIONS),
            "contractions": simple_data.CONTRACTIONS,
            "closers": simple_data.CLOSERS,
            "strong_ends": simple_data.STRONG_ENDS,
        },
        "alignment": {"cluster": to_javascript(cluster_pattern()), "max_altered": MAX_ALTERED},
    }
