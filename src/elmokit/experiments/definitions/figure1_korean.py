"""Figure 1 in Korean: score over the number of labels, by morphemes."""

from dataclasses import replace

from elmokit.experiments.definitions.figure1 import EXPERIMENT as ENGLISH
from elmokit.experiments.settings import KOREAN

EXPERIMENT = replace(
    ENGLISH,
    language="ko",
    tasks=tuple(settings for settings in KOREAN if settings.task in ("pos", "ner")),
)
