"""What README, docs and cards say of the published experiments: tables, notes, counts."""

import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import stdev
from typing import Any

from elmokit.experiments.definitions import find_experiment
from elmokit.experiments.tables import NOTHING
from elmokit.weights.locate import PACKAGED_MODELS
from elmokit.weights.model_dir import load_model

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs/results/experiments"
SOURCES = {"en": "table1", "ko": "korean"}
"""Where the scores of a language stand."""
HEADERS = {
    "en": (
        {"en": "English", "ko": "Korean"},
        ("Static vectors", "With ELMo", "Error reduction", "*p* (Holm)", "10 % of the labels",
         "Error reduction"),
    ),
    "ko": (
        {"en": "영어", "ko": "한국어"},
        ("정적 벡터", "ELMo 추가", "오류 감소율", "*p*(Holm)", "레이블 10 %만 사용", "오류 감소율"),
    ),
}  # fmt: skip
OTHER_MODEL = {
    "en": "Made with an earlier model (hash `{}`), not with the one in the package.",
    "ko": "이 표는 지금 패키지에 들어 있는 모델이 아니라 이전 모델(해시 `{}`)로 만들었습니다.",
}
SCORE_COLUMNS = ("data", "labels", "static", "elmo")
MISSING_SEEDS = re.compile(r" \(\d+ of \d+ seeds\)")
SOME_SEEDS = {
    "en": "Not all planned seeds have run: the full table says how many.",
    "ko": "계획한 시드를 모두 실행하지는 못했습니다. 몇 개를 실행했는지는 전체 표에 있습니다.",
}
NOT_RUN = {"en": "Not run yet: {}.", "ko": "아직 실행하지 않은 과제: {}."}
ONE_SEED = " †"
WHAT_ONE_SEED_LACKS = {
    "en": "† One seed in each condition, so *p* leaves out the variance of training.",
    "ko": "† 조건마다 시드가 하나뿐이어서 *p*에는 학습에 따른 변동이 반영되어 있지 않습니다.",
}
TWO_SEEDS = " ‡"
WHAT_TWO_SEEDS_LACK = {
    "en": "‡ Two seeds in each condition, with standard deviations of {static:.2f} and {elmo:.2f}. "
    "*p* assumes that both conditions vary alike; Welch's *t* test, which does not, gives {p:.3f} "
    "even before the adjustment.",
    "ko": "‡ 조건마다 시드가 둘뿐이며 표준편차가 {static:.2f}와 {elmo:.2f}입니다. *p*는 두 조건의 "
    "분산이 같다고 가정합니다. 그렇게 가정하지 않는 Welch의 *t* 검정에서는 보정하기 전에 이미 "
    "{p:.3f}입니다.",
}
EXCEPTIONS = {
    "table1": {
        "en": "Not everything was settled before the runs. When the gains were known, the controls "
        "of sentiment and coreference were dropped, and other vectors were used for the controls "
        "of semantic roles and question answering; missing seeds were not made up for. Widths, "
        "dropout and the number of epochs come in part from development runs on the same dev sets.",
        "ko": "모든 것을 실행 전에 정하지는 않았습니다. 점수 차이를 안 뒤에 감성 분석과 상호참조 "
        "해결의 대조 조건을 뺐고, 의미역 결정과 질의응답의 대조 조건에는 다른 벡터를 썼으며, 빠진 "
        "시드는 채우지 않았습니다. 너비와 드롭아웃과 에폭 수 가운데 일부는 같은 개발 데이터로 "
        "점수를 잰 예비 실행에서 골랐습니다.",
    },
    "korean": {
        "en": "Not everything was settled before the runs: the tuning of the learning rates was "
        "added when six scores were known. There are no controls, so the gains are not "
        "separated from other possible causes.",
        "ko": "모든 것을 실행 전에 정하지는 않았습니다. 학습률 조정은 점수 여섯 개를 안 뒤에 "
        "더했습니다. 대조 조건이 없으므로 향상에 다른 원인이 있을 수 있습니다.",
    },
}
"""What the protocol of the experiments names as decided after scores were known."""
CONTROLS = {"table1": "controls"}
"""The experiment with the controls of another."""
CONTROL_NAMES = {
    "static, as wide as elmo": ("static vectors as wide as ELMo", "ELMo와 너비가 같은 정적 벡터"),
    "static, at the output too": (
        "static vectors at the output too", "정적 벡터를 출력에도 쓰는 조건"
    ),
    "untrained biLM": ("an untrained biLM", "학습하지 않은 biLM"),
    "layer 0": ("the token layer alone", "토큰 층만 쓰는 조건"),
    "average of the layers": ("the plain average of the layers", "층의 단순 평균"),
}  # fmt: skip
NO_CONTROLS = {
    "en": "The controls ({controls}) have not run yet, so the gains are not yet separated from "
    "other possible causes.",
    "ko": "대조 조건({controls})을 아직 실행하지 않았으므로, 향상에 다른 원인이 있을 가능성을 "
    "배제할 수 없습니다.",
}
SOME_CONTROLS = {
    "en": "Controls have run on {run} of {planned} tasks ({names}), with {seeds} seeds. For "
    "each control, the number of these tasks on which ELMo scores higher (in parentheses: with "
    "p < 0.05, Holm): {found}. Where a control is missing or not clearly below ELMo, the gain "
    "may have another cause.",
    "ko": "대조 조건은 {planned}개 과제 중 {run}개({names})에서 시드 {seeds}개로 실행했습니다. "
    "대조 조건마다, 이 가운데 ELMo의 점수가 더 높은 과제의 수(괄호 안은 그중 p < 0.05(Holm)인 "
    "과제의 수)는 다음과 같습니다. {found}. 대조 조건을 실행하지 않았거나 차이가 뚜렷하지 않은 "
    "과제에서는 향상에 다른 원인이 있을 수 있습니다.",
}
FOUND_OF_CONTROL = {
    "en": "{name}: {above} of {run} ({sure})",
    "ko": "{name}: {run}개 중 {above}개({sure}개)",
}
LABELS = {
    "ner-en-uner-ewt": (
        "named entity recognition, UNER-EWT (span F1)",
        "개체명 인식, UNER-EWT (F1)",
    ),
    "srl-en-propbank-ewt": (
        "semantic role labeling, PropBank-EWT (F1)",
        "의미역 결정, PropBank-EWT (F1)",
    ),
    "sst-5": ("sentiment analysis, SST-5 (accuracy)", "감성 분석, SST-5 (정확도)"),
    "nli-snli-sample": (
        "natural language inference, SNLI (accuracy)",
        "자연어 추론, SNLI (정확도)",
    ),
    "squad-v1.1": ("question answering, SQuAD (F1)", "질의응답, SQuAD (F1)"),
    "coref-en-litbank": (
        "coreference resolution, LitBank (average F1)",
        "상호참조 해결, LitBank (평균 F1)",
    ),
    "ud-ko-kaist": ("part-of-speech tagging, Kaist (accuracy)", "품사 태깅, Kaist (정확도)"),
    "ner-ko-kmou": ("named entity recognition, KMOU (span F1)", "개체명 인식, KMOU (F1)"),
    "nsmc-rebuilt-ko": ("sentiment analysis, NSMC (accuracy)", "감성 분석, NSMC (정확도)"),
    "nli-klue-ko": ("natural language inference, KLUE (accuracy)", "자연어 추론, KLUE (정확도)"),
    "korquad-v1.0": (
        "question answering, KorQuAD (character F1)",
        "질의응답, KorQuAD (글자 단위 F1)",
    ),
}
LARGE = 6.0
"""Share of the errors, in percent, that is counted as a large gain: the least of the paper's."""


def read_published(name: str) -> dict[str, Any]:
    """Return the results of an experiment as they are published, or raise FileNotFoundError."""
    return json.loads((PAGES / f"{name}.json").read_text(encoding="utf-8"))


def columns_of(table: dict[str, Any], *names: str) -> list[tuple[str, ...]]:
    """Return some columns of a table of a results file, by their names."""
    places = [table["header"].index(name) for name in names]
    return [tuple(row[place] for place in places) for row in table["rows"]]


def scores_table(results: dict[str, Any], data_language: str, written_in: str) -> str:
    """Return a table of scores with all labels, and with a tenth of them, from a results file.

    Tasks without any score are left out.
    """
    scores, gains = results["tables"][:2]
    by_row = {
        (dataset, labels): tuple(MISSING_SEEDS.sub("", cell) for cell in pair)
        for dataset, labels, *pair in columns_of(scores, *SCORE_COLUMNS)
    }
    columns = ("data", "labels", "condition", "error reduction", "p (Holm)", "seeds")
    against = {
        (dataset, labels): pair
        for dataset, labels, condition, *pair in columns_of(gains, *columns)
        if condition == "elmo"
    }
    nothing = (NOTHING, NOTHING, "")
    two_seeds = _of_two_seeds(results)
    names, header = HEADERS[written_in]
    lines = [(names[data_language], *header), ("---",) * (len(header) + 1)]
    for dataset in _by_presence(results)[0]:
        label = LABELS[dataset][written_in == "ko"]
        static, elmo = _with_the_better_one_bold(*by_row[dataset, "100 %"])
        gone, p, seeds = against.get((dataset, "100 %"), nothing)
        p += ONE_SEED * (seeds == "1") + TWO_SEEDS * (dataset in two_seeds)
        few = by_row.get((dataset, "10 %"), nothing)
        both = NOTHING if NOTHING in few else " → ".join(few)
        gone_with_few, *_ = against.get((dataset, "10 %"), nothing)
        lines.append((label, static, elmo, gone, p, both, gone_with_few))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _of_two_seeds(results: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return Welch's p and the standard deviations, by data set, of gains of two seeds each."""
    from scipy.stats import ttest_ind

    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run in results.get("runs", ()):
        if run["share"] == 1:
            values[run["dataset"], run["condition"]].append(run["value"])
    pairs = {
        dataset: (elmo, values.get((dataset, "static"), []))
        for (dataset, condition), elmo in values.items()
        if condition == "elmo"
    }
    return {
        dataset: {
            "static": stdev(static),
            "elmo": stdev(elmo),
            "p": float(ttest_ind(elmo, static, equal_var=False)[1]),
        }
        for dataset, (elmo, static) in pairs.items()
        if len(elmo) == len(static) == 2
    }


def _by_presence(results: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the data sets that have a score, and those that have none, in order."""
    rows = columns_of(results["tables"][0], *SCORE_COLUMNS)
    scored = {dataset for dataset, _, *pair in rows if set(pair) != {NOTHING}}
    planned = list(dict.fromkeys(dataset for dataset, *_ in rows))
    return [one for one in planned if one in scored], [one for one in planned if one not in scored]


def missing_tasks(results: dict[str, Any], written_in: str) -> str:
    """Return the names of the tasks that have no score."""
    return "; ".join(LABELS[one][written_in == "ko"] for one in _by_presence(results)[1])


def two_seeds_notes(results: dict[str, Any], written_in: str) -> list[str]:
    """Return what p leaves out where each condition has two seeds."""
    text = WHAT_TWO_SEEDS_LACK[written_in]
    return [text.format(**figures) for figures in _of_two_seeds(results).values()]


def exceptions_note(results: dict[str, Any], written_in: str) -> str:
    """Return what was decided after scores were known; nothing if the protocol names nothing."""
    return EXCEPTIONS.get(results["experiment"], {}).get(written_in, "")


def controls_note(results: dict[str, Any], written_in: str) -> str:
    """Return what the controls of an experiment say so far; nothing if none are planned.

    A task counts once all its controls have a score with the same biLM.
    """
    if results["experiment"] not in CONTROLS:
        return ""
    column = written_in == "ko"
    scored = _scored_controls(results)
    if not scored:
        every = ", ".join(names[column] for names in CONTROL_NAMES.values())
        return NO_CONTROLS[written_in].format(controls=every)
    tests = {
        control: [one for one in scored if one["condition"] == control] for control in CONTROL_NAMES
    }
    ran = {one["dataset"] for one in scored}
    planned = [dataset for datasets in _by_presence(results) for dataset in datasets]
    return SOME_CONTROLS[written_in].format(
        run=len(ran), planned=len(planned), seeds=_from_to({len(one["seeds"]) for one in scored}),
        names="; ".join(
            LABELS[one][column].rsplit(" (", 1)[0] for one in planned if one in ran
        ),
        found="; ".join(
            FOUND_OF_CONTROL[written_in].format(
                name=CONTROL_NAMES[control][column], run=len(found),
                above=sum(one["gain"] < 0 for one in found),
                sure=sum(one["gain"] < 0 and one["adjusted_p"] < 0.05 for one in found),
            )
            for control, found in tests.items()
            if found
        ),
    )  # fmt: skip


def _scored_controls(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tests of controls against ELMo, of the tasks whose controls have all run."""
    name = CONTROLS[results["experiment"]]
    if not (PAGES / f"{name}.json").is_file():
        return []
    controls = read_published(name)
    if scored_hash(controls) != scored_hash(results):
        return []
    tests = [one for one in controls["comparisons"] if one["condition"] in CONTROL_NAMES]
    scored = {(one["task"], one["condition"]) for one in tests}
    complete = {
        task
        for task in {one["task"] for one in tests}
        if all(
            (task, one.name) in scored
            for one in find_experiment(name).conditions
            if one.name in CONTROL_NAMES and (not one.tasks or task in one.tasks)
        )
    }
    return [one for one in tests if one["task"] in complete]


def _from_to(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}–{high}"


def scored_hash(results: dict[str, Any]) -> str:
    """Return the start of the hash of the model that an experiment was made with."""
    return results["made"]["biLM"].split()[-1]


def shipped_hash(language: str, models: Path = PACKAGED_MODELS) -> str:
    """Return the hash of the model in the package."""
    return load_model(models / language).model_hash()


def is_made_with(results: dict[str, Any], model_hash: str) -> bool:
    """Return whether an experiment was made with the model of this hash."""
    return model_hash.startswith(scored_hash(results))


def notes_on(results: dict[str, Any], shipped: str, written_in: str) -> str:
    """Return paragraphs beside a table: tasks and seeds it lacks, its controls, another model."""
    notes = []
    if missing := missing_tasks(results, written_in):
        notes.append(NOT_RUN[written_in].format(missing))
    if any(MISSING_SEEDS.search(cell) for row in results["tables"][0]["rows"] for cell in row):
        notes.append(SOME_SEEDS[written_in])
    if ONE_SEED in scores_table(results, "en", written_in):
        notes.append(WHAT_ONE_SEED_LACKS[written_in])
    notes += filter(None, [*two_seeds_notes(results, written_in),
                           controls_note(results, written_in),
                           exceptions_note(results, written_in)])  # fmt: skip
    if not is_made_with(results, shipped):
        notes.append(OTHER_MODEL[written_in].format(scored_hash(results)))
    return "".join(f"\n{note}\n" for note in notes)


def _with_the_better_one_bold(static: str, elmo: str) -> tuple[str, str]:
    if NOTHING in (static, elmo):
        return static, elmo
    better = (_value(elmo) or 0) > (_value(static) or 0)
    return (static, f"**{elmo}**") if better else (f"**{static}**", elmo)


def conditions_table(results: dict[str, Any]) -> str:
    """Return a table with a row for each task and a column for each condition, the best in bold.

    Tasks without any score are left out.
    """
    table = results["tables"][0]
    conditions = table["header"][table["header"].index("examples") + 1 :]
    lines = [("", *conditions), ("---",) * (len(conditions) + 1)]
    for dataset, *cells in columns_of(table, "data", *conditions):
        scores = [MISSING_SEEDS.sub("", cell) for cell in cells]
        if set(scores) == {NOTHING}:
            continue
        values = [_value(score) for score in scores]
        best = max((value for value in values if value is not None), default=None)
        shown = [
            f"**{score}**" if value is not None and value == best else score
            for score, value in zip(scores, values, strict=True)
        ]
        lines.append((LABELS[dataset][0], *shown))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _value(score: str) -> float | None:
    return None if score == NOTHING else float(score.split()[0])


def counts_text(results: dict[str, Any]) -> str:
    """Return in how many of the planned tasks ELMo helps, how much, and with fewer labels."""
    planned = sum(len(datasets) for datasets in _by_presence(results))
    elmo = (one for one in results["comparisons"] if one["condition"] == "elmo")
    gains = {(one["dataset"], one["share"]): one for one in elmo}
    whole = [one for (_, share), one in gains.items() if share == 1]
    better = [one for one in whole if one["gain"] > 0]
    sure = [one for one in better if one["adjusted_p"] < 0.05]
    large = [one for one in better if one["error_reduction"] >= LARGE]
    changes = [
        one for one in results["gain_changes"] if one["condition"] == "elmo" and one["change"] > 0
    ]
    more = [one for one in changes if one["adjusted_p"] < 0.05]
    return (
        f"better on **{len(better)}** of {planned}, p < 0.05 (Holm) on **{len(sure)}**, at least "
        f"{LARGE:g} % on **{len(large)}**; with a tenth of the labels the gain is larger on "
        f"**{len(changes)}**, p < 0.05 (Holm) on **{len(more)}**"
    )
