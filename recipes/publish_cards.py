"""Put the published task scores onto the cards of the models in the package.

    python recipes/publish_cards.py

To be run after recipes/publish_results.py and after recipes/package_model.py; it reads
docs/results/experiments/*.json. A test holds the cards equal to them.
"""

from pathlib import Path
from typing import Any

from publish_results import LABELS, PAGES, SOURCES, columns_of, read_published

from elmokit.errors import FormatError
from elmokit.experiments.results.tables import NOTHING
from elmokit.weights.locate import PACKAGED_MODELS
from elmokit.weights.model_dir import load_model
from elmokit.weights.model_files import read_config


def card_scores(results: dict[str, Any]) -> dict[str, str]:
    """Return the scores with all labels, with ELMo and with static vectors, by task.

    A task that lacks one of the two is left out.
    """
    scores = columns_of(results["tables"][0], "data", "labels", "static", "elmo")
    return {
        LABELS[dataset][0]: f"{elmo} (static word vectors: {static})"
        for dataset, labels, static, elmo in scores
        if labels == "100 %" and NOTHING not in (static, elmo)
    }


def scores_note(results: dict[str, Any]) -> str:
    """Return what must be known to read the scores."""
    made = results["made"]
    return (
        f"In percent, of small task models with mostly cut training sets; seeds {made['seeds']}; "
        f"{made['scored']}. Not to be set beside published numbers. Made by {made['command']}."
    )


def write_cards(models: Path = PACKAGED_MODELS) -> None:
    """Write the cards of all models, or none.

    Raises:
        FormatError: if scores are another model's than the one in the package.
    """
    found = []
    for language, name in SOURCES.items():
        results, model = read_published(name), load_model(models / language)
        scored, shipped = results["made"]["biLM"].split()[-1], model.model_hash()
        if not shipped.startswith(scored):
            raise FormatError(
                f"{PAGES / name}.json has scores of the model {scored}, but the package's "
                f"{language} is {shipped[:12]}. Run `elmokit experiment {name}` with it and "
                "recipes/publish_results.py first."
            )
        model.training_metadata["scores"] = card_scores(results)
        model.training_metadata["scores_note"] = scores_note(results)
        found.append((model, models / language))
    for model, directory in found:
        model.save(directory, dtype=read_config(directory).weights or "float16")


if __name__ == "__main__":
    write_cards()
