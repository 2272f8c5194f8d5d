"""Put the published task scores onto the cards of the models in the package.

    python recipes/publish_cards.py

To be run after recipes/publish_results.py and after recipes/package_model.py; it reads
docs/results/experiments/*.json, and writes the cards and what the Korean results page says of the
models. A test holds both equal to their sources.
"""

from pathlib import Path
from typing import Any

from publish_results import between, write_text
from published_scores import (
    LABELS,
    MISSING_SEEDS,
    NOT_RUN,
    PAGES,
    ROOT,
    SOURCES,
    columns_of,
    controls_note,
    exceptions_note,
    is_made_with,
    missing_tasks,
    read_published,
    scored_hash,
)

from elmokit.experiments.tables import NOTHING
from elmokit.files.location import counted
from elmokit.weights.locate import PACKAGED_MODELS
from elmokit.weights.model_dir import load_model
from elmokit.weights.model_files import read_config

KOREAN_PAGE = ROOT / "docs/ko/results/index.md"


def card_scores(results: dict[str, Any]) -> dict[str, str]:
    """Return the scores with all labels, with ELMo and with static vectors, by task.

    A task that lacks one of the two is left out. The number of seeds is that with ELMo.
    """
    scores = columns_of(results["tables"][0], "data", "labels", "static", "elmo")
    seeds = {
        (one["dataset"], one["share"]): len(one["seeds"])
        for one in results["comparisons"]
        if one["condition"] == "elmo"
    }
    return {
        LABELS[dataset][0]: _score(elmo, static, seeds[dataset, 1.0])
        for dataset, labels, static, elmo in scores
        if labels == "100 %" and NOTHING not in (static, elmo)
    }


def _score(elmo: str, static: str, num_seeds: int) -> str:
    without = (MISSING_SEEDS.sub("", cell) for cell in (elmo, static))
    text = "{} (static word vectors: {})".format(*without)
    if missing := MISSING_SEEDS.search(elmo):
        return f"{text}, {missing[0].strip(' ()')}"
    return f"{text}, {counted(num_seeds, 'seed')}"


def scores_note(results: dict[str, Any]) -> str:
    """Return what must be known to read the scores."""
    made, missing = results["made"], missing_tasks(results, "en")
    sentences = [
        "In percent, of small task models trained on mostly reduced training sets; mean and "
        f"standard deviation over the seeds of each task; scored on {made['scored']}. Not "
        "comparable with published numbers.",
        *([NOT_RUN["en"].format(missing)] if missing else []),
        *filter(None, [controls_note(results, "en"), exceptions_note(results, "en")]),
        f"Made by {made['command']}.",
    ]
    return " ".join(sentences)


def korean_cards(page: str, models: Path = PACKAGED_MODELS) -> str:
    """Return the text of the Korean results page with a column for each packaged model."""
    columns = [
        ("", "혼란도(순방향 / 역방향 / 평균)", "예측 대상 수, 미등록어 비율", "토크나이저",
         "정규화", "층", "파라미터 수(소프트맥스 제외)", "어휘", "라이선스",
         "모델 해시")
    ]  # fmt: skip
    for name in SOURCES:
        model = load_model(models / name)
        made, tokenizer, vocab = model.training_metadata, model.tokenizer, model.word_vocab
        found = made["perplexity"]
        directions = (found["forward"], found["backward"], found["mean"])
        columns.append((
            f"`{name}`", " / ".join(f"{value:.1f}" for value in directions),
            f"{found['tokens']:,}, {100 * found['oov_rate']:.1f} %",
            f"{tokenizer.name} {tokenizer.version}", model.config.char_vocab.normalization,
            f"{model.output_dim}차원 {model.num_layers}개(셀 {model.config.lstm.cell_dim})",
            f"{model.num_parameters():,}", "–" if vocab is None else f"{len(vocab):,}단어",
            made["license"], f"`{model.model_hash()[:12]}`",
        ))  # fmt: skip
    rows = [f"| {' | '.join(row)} |" for row in zip(*columns, strict=True)]
    rows.insert(1, "| --- " * len(columns) + "|")
    return between(page, "models", "\n" + "\n".join(rows) + "\n", KOREAN_PAGE.name)


def write_cards(models: Path = PACKAGED_MODELS) -> list[str]:
    """Write the cards of all models, or none; return a sentence for each that gets no scores.

    Those are the ones whose published scores are another model's.
    """
    found, without = [], []
    for language, name in SOURCES.items():
        results, model = read_published(name), load_model(models / language)
        facts = model.training_metadata
        if is_made_with(results, model.model_hash()):
            facts |= {"scores": card_scores(results), "scores_note": scores_note(results)}
        else:
            for fact in ("scores", "scores_note"):
                facts.pop(fact, None)
            without.append(
                f"{PAGES / name}.json has scores of the model {scored_hash(results)}, but the "
                f"package's {language} is {model.model_hash()[:12]}: no scores on its card. Run "
                f"`elmokit experiment {name}` with it and recipes/publish_results.py first."
            )
        found.append((model, models / language))
    for model, directory in found:
        model.save(directory, dtype=read_config(directory).weights or "float16")
    return without


if __name__ == "__main__":
    for sentence in write_cards():
        print(sentence)
    write_text(KOREAN_PAGE, korean_cards(KOREAN_PAGE.read_text(encoding="utf-8")).encode())
