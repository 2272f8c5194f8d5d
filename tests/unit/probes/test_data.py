"""What a directory of a probe's data must hold."""

import lzma

import pytest

from elmokit.errors import InputError
from elmokit.probes.data import (
    read_pos_data,
    read_sense_data,
    read_wic_data,
)

CONLLU = "1\tcats\tcat\tNOUN\tNNS\t_\t0\troot\t_\t_\n\n"
TEXT = (
    "<corpus><text id='d'><sentence id='d.s0'><wf lemma='the' pos='DET'>The</wf>"
    "<instance id='d.s0.t0' lemma='bank' pos='NOUN'>bank</instance></sentence></text></corpus>"
)
KEYS = "d.s0.t0 bank%1\n"
SENSES = "lemma\tpos\trank\tsense_key\tsynset\tgloss\nbank\tn\t1\tbank%1\ts\tg\n"


@pytest.fixture
def senses_dir(tmp_path):
    for name in ("semcor", "semeval2007"):
        (tmp_path / f"{name}.gold.key.txt").write_text(KEYS, encoding="utf-8")
        with lzma.open(tmp_path / f"{name}.data.xml.xz", "wt", encoding="utf-8") as file:
            file.write(TEXT)
    (tmp_path / "oewn2021-senses.tsv").write_text(SENSES, encoding="utf-8")
    return tmp_path


def test_tagged_sentences_are_found_by_split(tmp_path):
    for split in ("train", "dev"):
        (tmp_path / f"en-ud-{split}.conllu").write_text(CONLLU, encoding="utf-8")
    data = read_pos_data(tmp_path)
    assert [one.tags for one in (*data.train, *data.dev)] == [("NOUN",), ("NOUN",)]
    assert read_pos_data(tmp_path, column="xpos").dev[0].tags == ("NNS",)


def test_senses_are_text_keys_and_an_inventory_of_one_test_set(senses_dir):
    data = read_sense_data(senses_dir)
    assert data.train[0].tokens == data.test[0].tokens == ("The", "bank")
    assert data.inventory.first_sense("bank", "NOUN") == "bank%1"
    (senses_dir / "senseval2.data.xml").write_text(TEXT.replace("The", "A"), encoding="utf-8")
    (senses_dir / "senseval2.gold.key.txt").write_text(KEYS, encoding="utf-8")
    assert read_sense_data(senses_dir, test="senseval2").test[0].tokens == ("A", "bank")
    for wrong in (None, "x"):
        with pytest.raises(InputError, match=r"semeval2007, senseval2 .*--test"):
            read_sense_data(senses_dir, test=wrong)


def test_pairs_are_told_by_their_columns(tmp_path):
    korean = "ID\tTarget\tSENTENCE1\tSENTENCE2\tANSWER\n1\t배\t[배]를 타다\t[배]를 먹다\tFalse\n"
    english = (
        '{"id": 1, "lemma": "bank", "sentence1": "a bank", "start1": 2, "end1": 6, '
        '"sentence2": "bank", "start2": 0, "end2": 4, "label": true}\n'
    )
    (tmp_path / "train.tsv").write_text(korean, encoding="utf-8")
    (tmp_path / "dev.jsonl").write_text(english, encoding="utf-8")
    data = read_wic_data(tmp_path)
    (ship,), (bank,) = data.train, data.dev
    assert (ship.second.text, ship.second.start, ship.second.end) == ("배를 먹다", 0, 1)
    assert (bank.first.start, bank.first.end, bank.same_sense) == (2, 6, True)
