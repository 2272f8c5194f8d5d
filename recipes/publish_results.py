"""Put finished experiments into the documentation: their pages, and the tables of scores.

    python recipes/publish_results.py experiments

EXPERIMENTS is the folder that `elmokit experiment NAME -o experiments/NAME` wrote to. The tables
stand between marks (`<!-- scores en: begin -->`) in README.md, README.ko.md and
docs/results/experiments.md; a test holds them equal to docs/results/experiments/*.json.
"""

import argparse
import json
import re
import shutil
from pathlib import Path
from typing import Any

from elmokit.analysis.experiments.registry import EXPERIMENTS
from elmokit.atomic import whole_file
from elmokit.errors import FormatError

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs/results/experiments"
SOURCES = {"en": "table1", "ko": "korean"}
"""Where the scores of a language stand."""
DOCUMENTS = {"README.md": "en", "docs/results/experiments.md": "en", "README.ko.md": "ko"}
"""With tables of scores, and what they are written in."""
HEADERS = {
    "en": (
        {"en": "English", "ko": "Korean"},
        ("Static vectors", "with ELMo", "Errors gone", "*p*", "A tenth of the labels",
         "Errors gone"),
    ),
    "ko": (
        {"en": "영어", "ko": "한국어"},
        ("정적 벡터", "ELMo와 함께", "줄어든 오류", "*p*", "레이블 10분의 1", "줄어든 오류"),
    ),
}  # fmt: skip
LABELS = {
    "ner-en-uner-ewt": ("named entities, UNER-EWT (span F1)", "개체명, UNER-EWT (F1)"),
    "srl-en-propbank-ewt": ("semantic roles, PropBank-EWT (F1)", "의미역, PropBank-EWT (F1)"),
    "sst-5": ("sentiment, SST-5 (accuracy)", "감성, SST-5 (정확도)"),
    "nli-snli-sample": ("entailment, SNLI (accuracy)", "함의, SNLI (정확도)"),
    "squad-v1.1": ("question answering, SQuAD (F1)", "질의응답, SQuAD (F1)"),
    "coref-en-litbank": ("coreference, LitBank (average F1)", "상호참조, LitBank (평균 F1)"),
    "ud-ko-kaist": ("parts of speech, Kaist (accuracy)", "품사, Kaist (정확도)"),
    "ner-ko-kmou": ("named entities, KMOU (span F1)", "개체명, KMOU (F1)"),
    "nsmc-rebuilt-ko": ("sentiment, NSMC (accuracy)", "감성, NSMC (정확도)"),
    "nli-klue-ko": ("entailment, KLUE (accuracy)", "함의, KLUE (정확도)"),
    "korquad-v1.0": ("question answering, KorQuAD (character F1)", "질의응답, KorQuAD (글자 F1)"),
}
NOTHING = "–"
FOREIGN_PATH = re.compile(r"[\s\"`=](/|~/)\w")


def publish_pages(folder: Path) -> list[str]:
    """Copy what the experiments wrote; return the names of those that there are.

    Raises:
        FormatError: if a page names places of the machine it was made on.
    """
    found = [name for name in EXPERIMENTS if (folder / name / "table.md").is_file()]
    for name in found:
        texts = {
            suffix: (folder / name / given).read_text(encoding="utf-8")
            for suffix, given in (("md", "table.md"), ("json", "results.json"))
        }
        for suffix, text in texts.items():
            if place := FOREIGN_PATH.search(text):
                raise FormatError(
                    f"{name}.{suffix} has an absolute path ({text[place.start():][:60]!r}). Run "
                    "the experiment with relative ones: from a folder that holds its data."
                )  # fmt: skip
        if (folder / name / "plot.png").is_file():
            shutil.copy(folder / name / "plot.png", PAGES / f"{name}.png")
            title, rest = texts["md"].split("\n", 1)
            texts["md"] = f"{title}\n\n![{title.lstrip('# ')}]({name}.png)\n{rest}"
        for suffix, text in texts.items():
            _write(PAGES / f"{name}.{suffix}", text)
    return found


def scores_table(results: dict[str, Any], data_language: str, written_in: str) -> str:
    """Return a table of scores with all labels, and with a tenth of them, from a results file."""
    scores, gains = (table["rows"] for table in results["tables"][:2])
    by_row = {(row[1], row[2]): (row[5], row[6]) for row in scores}
    against = {(row[1], row[2]): (row[5], row[6]) for row in gains}
    names, columns = HEADERS[written_in]
    lines = [(names[data_language], *columns), ("---",) * (len(columns) + 1)]
    for dataset in dict.fromkeys(row[1] for row in scores):
        label = LABELS[dataset][written_in == "ko"]
        gone, p = against.get((dataset, "100 %"), (NOTHING, NOTHING))
        static, elmo = _with_the_better_one_bold(*by_row[dataset, "100 %"])
        few = by_row.get((dataset, "10 %"), (NOTHING, NOTHING))
        both = NOTHING if NOTHING in few else " → ".join(few)
        gone_with_few = against.get((dataset, "10 %"), (NOTHING, NOTHING))[0]
        lines.append((label, static, elmo, gone, p, both, gone_with_few))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _with_the_better_one_bold(static: str, elmo: str) -> tuple[str, str]:
    if NOTHING in (static, elmo):
        return static, elmo
    better = float(elmo.split()[0]) > float(static.split()[0])
    return (static, f"**{elmo}**") if better else (f"**{static}**", elmo)


def with_scores(document: str) -> str:
    """Return a document's text with the tables of the results that are published.

    Raises:
        FormatError: if it lacks the marks.
    """
    path = ROOT / document
    text = path.read_text(encoding="utf-8")
    for language, name in SOURCES.items():
        results = json.loads((PAGES / f"{name}.json").read_text(encoding="utf-8"))
        table = scores_table(results, language, DOCUMENTS[document])
        begin, end = (f"<!-- scores {language}: {edge} -->" for edge in ("begin", "end"))
        if not (begin in text and end in text):
            raise FormatError(f"{document} lacks {begin} … {end}, the place of the table.")
        before, after = text.split(begin)[0], text.split(end)[1]
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


def _write(path: Path, text: str) -> None:
    with whole_file(path) as file:
        file.write_text(text, encoding="utf-8")


def main() -> None:
    """Parse, write, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiments", type=Path, help="folder with a folder for each experiment")
    options = parser.parse_args()
    for name in publish_pages(options.experiments):
        print(f"{PAGES.relative_to(ROOT)}/{name}.md")
    for document in DOCUMENTS:
        _write(ROOT / document, with_scores(document))
        print(document)


if __name__ == "__main__":
    main()
