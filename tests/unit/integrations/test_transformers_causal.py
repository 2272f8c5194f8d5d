"""A causal language model of transformers gives sentences the surprisal that elmokit gives them."""

import math

import pytest
import torch

from elmokit.errors import InputError
from elmokit.evaluation.surprisal import surprisal
from elmokit.text.spelling import SpellingModel
from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.training_models import VOCAB, toy_model

transformers = pytest.importorskip("transformers", reason="extra `transformers` is not installed")

from elmokit.integrations.transformers import ElmoForCausalLM, ElmoWordTokenizer  # noqa: E402

TEXTS = ["the boat lay by the bank", "the walrus by 여행자 river 🙂", "bank"]
DIRECTIONS = ("forward", "backward")


def spelling_model(**settings):
    model = toy_model(tokenizer=TokenizerConfig(name="simple", version="2"), **settings)
    model.spelling = SpellingModel.train(["walnut", "wall", "여행", "🙃"])
    return model


def bits_of(model, tokenizer, texts):
    """Sum the log-probabilities of a row's tokens, as programs that score sentences do."""
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    log_probs = model(**batch).logits.log_softmax(dim=-1)[:, :-1]
    scores = log_probs.gather(2, batch["input_ids"][:, 1:, None]).squeeze(2)
    return -(scores * batch["attention_mask"][:, 1:]).sum(dim=1).double() / math.log(2)


@pytest.mark.parametrize("word_input", [False, True])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_what_auto_classes_load_gives_the_surprisal_of_elmokit(tmp_path, direction, word_input):
    source = spelling_model(word_input=word_input)
    for kind in (ElmoForCausalLM, ElmoWordTokenizer):
        kind.from_elmokit(source, direction=direction).save_pretrained(tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert (type(model), type(tokenizer)) == (ElmoForCausalLM, ElmoWordTokenizer)
    expected = [0.0] * len(TEXTS)
    for row in surprisal(source, TEXTS, precision="fp32"):
        expected[row.sentence] += getattr(row, direction)
    assert bits_of(model, tokenizer, TEXTS).tolist() == pytest.approx(expected, abs=1e-3)
    for text, bits in zip(TEXTS, expected, strict=True):  # whatever the batch and its padding
        assert bits_of(model, tokenizer, [text]).tolist() == pytest.approx([bits], abs=1e-3)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_logits_are_distributions_that_later_tokens_do_not_change(direction):
    source = spelling_model()
    model = ElmoForCausalLM.from_elmokit(source, direction=direction)
    tokenizer = ElmoWordTokenizer.from_elmokit(source, direction=direction)
    ids = tokenizer(TEXTS[1:2], return_tensors="pt")["input_ids"]
    whole = model(ids).logits
    assert whole.logsumexp(dim=-1).abs().max() < 1e-4
    for length in range(1, ids.shape[1]):
        part = model(ids[:, :length]).logits
        torch.testing.assert_close(part, whole[:, :length], atol=1e-4, rtol=1e-5)
    loss = model(ids, labels=ids).loss
    num_targets = ids.shape[1] - 1
    bits = bits_of(model, tokenizer, TEXTS[1:2])
    assert float(loss) == pytest.approx(float(bits[0]) * math.log(2) / num_targets, rel=1e-4)
    made = model.generate(ids[:, :2], max_new_tokens=5, do_sample=False)
    assert made[0, :2].tolist() == ids[0, :2].tolist()
    assert tokenizer.decode(made[0])


def test_text_survives_its_tokens():
    source = spelling_model()
    for direction in DIRECTIONS:
        tokenizer = ElmoWordTokenizer.from_elmokit(source, direction=direction)
        ids = tokenizer(TEXTS[1])["input_ids"]
        assert tokenizer.decode(ids, skip_special_tokens=False) == f"<S> {TEXTS[1]} </S>"
        assert tokenizer.decode(ids, skip_special_tokens=True) == TEXTS[1]
        bounds = (tokenizer.bos_token, tokenizer.eos_token)
        # programs may write the boundaries into the text
        assert tokenizer(f"{bounds[0]}{TEXTS[1]} {bounds[1]}")["input_ids"] == ids
        assert tokenizer(TEXTS[1], add_special_tokens=False)["input_ids"] == ids[1:-1]
        tokens = tokenizer.convert_ids_to_tokens(ids)
        assert tokenizer.convert_tokens_to_ids(tokens) == ids
        assert max(ids) < tokenizer.vocab_size == len(tokenizer.get_vocab())


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_offsets_are_the_places_of_the_words_in_the_text(direction):
    tokenizer = ElmoWordTokenizer.from_elmokit(spelling_model(), direction=direction)
    text = f"{TEXTS[1]} </S>" if direction == "forward" else TEXTS[1]  # the end may be in it
    batch = tokenizer([text, "bank"], padding=True, return_offsets_mapping=True)
    for one, ids, places in zip(
        [text, "bank"], batch["input_ids"], batch["offset_mapping"], strict=True
    ):
        read = [one[start:end] for start, end in places]
        whole = [word for k, word in enumerate(read) if word and word != read[k - 1]]
        assert (whole if direction == "forward" else whole[::-1]) == one.split()
        assert len(ids) == len(places)
        assert places[0] == (0, 0), "a boundary that is not in the text"
    alone = tokenizer(text, return_offsets_mapping=True)
    assert alone["offset_mapping"] == batch["offset_mapping"][0]
    with pytest.raises(InputError, match="is_split_into_words"):
        tokenizer(text.split(), is_split_into_words=True, return_offsets_mapping=True)


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(InputError, match=r"spelling\.safetensors"):
        ElmoForCausalLM.from_elmokit(toy_model())
    with pytest.raises(InputError, match="no softmax"):
        ElmoForCausalLM.from_elmokit(toy_model(vocab=None, softmax=None))
    model = ElmoForCausalLM.from_elmokit(spelling_model())
    for ids in ([1, len(VOCAB) + 70], [1, VOCAB.unknown_id, 4], [1, len(VOCAB) + 300]):
        with pytest.raises(InputError, match="Token"):
            model(torch.tensor([ids]))
