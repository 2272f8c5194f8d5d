"""Annotated text and the inventory of senses."""

import time

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.formats import senses
from elmokit.tasks.formats.senses import read_sense_inventory, read_senses

HEAD = '<?xml version="1.0" encoding="UTF-8" ?>\n<corpus lang="en">\n<text id="d0">\n'
TAIL = "</text>\n</corpus>\n"
FIRST = (
    '<sentence id="d0.s0">\n'
    '<wf lemma="the" pos="DET">The</wf>\n'
    '<instance id="d0.s0.t0" lemma="river_bank" pos="NOUN">river bank</instance>\n'
    '<instance id="d0.s0.t1" lemma="rise" pos="VERB">rose</instance>\n'
    '<wf lemma="&amp;" pos="CONJ">&amp;</wf>\n'
    "</sentence>\n"
)
SECOND = (
    '<sentence id="d0.s1">\n'
    '<instance id="d0.s1.t0" lemma="물" pos="NOUN">물</instance>\n'
    '<wf lemma="." pos=".">.</wf>\n'
    "</sentence>\n"
)
PLAIN = '<sentence id="d0.s2"><wf lemma="oh" pos="X">Oh</wf></sentence>\n'
KEYS = "d0.s0.t0 river_bank%1:17:00::\nd0.s0.t1 rise%2:38:00:: rise%2:30:01::\nd0.s1.t0 물%1\n"


class TestSenses:
    @pytest.fixture
    def read(self, write):
        def read(text, keys=KEYS, **settings):
            keys_path = write(keys, name="gold.key.txt")
            return list(read_senses(write(text, name="data.xml"), keys_path, **settings))

        return read

    def test_sentences_with_annotated_words(self, read, report):
        first, second = read(HEAD + FIRST + PLAIN + SECOND + TAIL, report=report)
        assert first.tokens == ("The", "river", "bank", "rose", "&")
        assert [(one.start, one.end) for one in first.occurrences] == [(1, 3), (3, 4)]
        assert first.occurrences[1].sense_keys == ("rise%2:38:00::", "rise%2:30:01::")
        assert (first.occurrences[0].lemma, first.occurrences[0].pos) == ("river_bank", "NOUN")
        assert (second.tokens, second.occurrences[0].name) == (("물", "."), "d0.s1.t0")
        assert (first.location.line, second.location.line) == (4, 11)
        assert report.examples == 3  # annotated words, not sentences

    def test_sentences_that_the_parser_gives_last_are_read(self, read, monkeypatch):
        monkeypatch.setattr(senses, "read_pieces", lambda path: [])  # expat may put off all of it
        parse = senses._SentenceParser.parse
        text = (HEAD + FIRST + SECOND + TAIL).encode()
        monkeypatch.setattr(
            senses._SentenceParser, "parse",
            lambda parser, piece, is_last=False: parse(parser, text, is_last=is_last),
        )  # fmt: skip
        assert len(read(HEAD + FIRST + SECOND + TAIL)) == 2

    def test_sentences_know_their_document(self, read):
        nameless = f"</text>\n<text>\n{SECOND}"
        first, second = read(HEAD + FIRST + nameless + TAIL)
        assert (first.document, second.document) == ("d0", "2")

    def test_keys_joined_by_semicolons_are_several(self, read):
        joined = "rise%2:38:00::;2:30:01:: rise%2:37:00::;stand_up%2:38:00::;"
        keys = KEYS.replace("rise%2:38:00:: rise%2:30:01::", joined)
        first, _ = read(HEAD + FIRST + SECOND + TAIL, keys)
        assert first.occurrences[1].sense_keys == (
            "rise%2:38:00::", "rise%2:30:01::", "rise%2:37:00::", "stand_up%2:38:00::",
        )  # fmt: skip

    def test_a_word_without_key_is_left_out_and_counted(self, read, report):
        keys = KEYS.replace("d0.s0.t1", "d0.s9.t9")
        text = HEAD + FIRST + SECOND + TAIL
        report.max_skipped_share = 0.5
        first, _ = read(text, keys, report=report)
        assert [one.name for one in first.occurrences] == ["d0.s0.t0"]
        assert report.skipped == {"no_gold_key": 1}
        with pytest.raises(
            FormatError, match=r"data\.xml: 1 of 3 .* 0\.05 .*no_gold_key: 1 .*line 7\b"
        ):
            read(text, keys)

    def test_keys_of_another_text(self, read):
        with pytest.raises(FormatError, match=r"data\.xml: 3 of 3 .*no_gold_key: 3 .*line 6\b"):
            read(HEAD + FIRST + SECOND + TAIL, "d7.s0.t0 a%1\n")

    def test_a_sentence_with_an_empty_word_is_skipped(self, read, report):
        bad = SECOND.replace(">.<", "> <")
        report.max_skipped_share = 0.5
        assert len(read(HEAD + FIRST + bad + TAIL, report=report)) == 1
        assert report.skipped == {"empty_token": 1}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", ", line 1: .*XML .* 0: "),
            ("just words\n", ", line 1: .*XML .* 0: "),
            (HEAD + FIRST, ", line 10: .*XML .* 0: "),
            (
                HEAD + FIRST.replace("</wf>", "", 1) + TAIL,
                ", line 6: <instance> .*<wf> .*: <corpus>",
            ),
            (HEAD + FIRST.replace("&amp;<", "&<") + TAIL, ", line 8: .*XML .* 30: "),
            (HEAD + FIRST.replace("wf", "w") + TAIL, ", line 5: <w> .*<sentence> .*: <corpus>"),
            (HEAD + "<wf>a</wf>" + TAIL, ", line 4: <wf> .*<text> .*: <corpus>"),
            ("<text></text>", ", line 1: <text> .*: <corpus>"),
            (HEAD + FIRST + FIRST + TAIL, r", line 12: .*'d0\.s0\.t0'"),
            (HEAD + FIRST.replace(' lemma="rise"', "") + TAIL, ", line 7: .*<instance> .*lemma"),
            (
                HEAD + FIRST.replace("The</wf>", "The</wf> lost") + TAIL,
                ", line 6: .*<wf> .*<instance>: ' lost",
            ),
            ('<!DOCTYPE corpus [<!ENTITY a "b">]>\n<corpus/>', ", line 1: .*entity"),
            (HEAD + PLAIN + TAIL, r": .*\bempty\b"),
            ("<corpus/>", r": .*\bempty\b"),
        ],
    )
    def test_damaged_text(self, read, text, message):
        with pytest.raises(FormatError, match=rf"/data\.xml{message}"):
            read(text)

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            (KEYS + "d0.s3.t0 ;\n", r"gold\.key\.txt, line 4: .*'d0\.s3\.t0' "),
            (KEYS + "d0.s3.t0\n", r"gold\.key\.txt, line 4: .*'d0\.s3\.t0' "),
            (KEYS + "\n" + KEYS, r"gold\.key\.txt, line 5: .*'d0\.s0\.t0' "),
        ],
    )
    def test_damaged_keys(self, read, keys, message):
        with pytest.raises(FormatError, match=message):
            read(HEAD + FIRST + TAIL, keys)

    def test_missing_keys_are_told_at_once(self, write, tmp_path):
        with pytest.raises(FileNotFoundError, match="/absent"):
            read_senses(write(HEAD + TAIL), tmp_path / "absent.txt")

    @pytest.mark.usefixtures("without_type_checks")
    def test_a_sentence_of_50000_words(self, read):
        words = '<wf lemma="a" pos="X">강물</wf>\n' * 49_999
        instance = '<instance id="d0.s1.t0" lemma="물" pos="NOUN">물</instance>\n'
        begin = time.process_time()
        (sentence,) = read(f"{HEAD}<sentence>{words}{instance}</sentence>{TAIL}")
        assert len(sentence.tokens) == 50_000
        assert sentence.occurrences[0].start == 49_999
        assert time.process_time() - begin < 30  # a square of it takes minutes


class TestInventory:
    HEADER = "lemma\tpos\trank\tsense_key\tsynset\tgloss\n"

    @pytest.fixture
    def inventory(self, write):
        rows = [
            "March\tn\t1\tmarch%1:28:00::\t15-n\tthe month",
            "march\tn\t2\tmarch%1:10:00::\t11-n\tmusic",
            "march\tn\t1\tmarch%1:04:00::\t10-n\ta procession",
            "march\tv\t1\tmarch%2:38:00::\t12-v\twalk in step",
            "river bank\tn\t1\triver_bank%1:17:00::\t13-n\tthe edge",
        ]
        return read_sense_inventory(write(self.HEADER + "\n".join(rows), name="senses.tsv"))

    def test_first_senses(self, inventory):
        assert inventory.first_sense("march", "VERB") == "march%2:38:00::"
        assert inventory.first_sense("river_bank", "NOUN") == "river_bank%1:17:00::"
        assert inventory.first_sense("Brook", "NOUN") is None
        assert inventory.first_sense("march", "ADV") is None
        assert len(inventory) == 5

    def test_senses_of_the_same_spelling_come_first(self, inventory):
        keys = [sense.sense_key for sense in inventory.senses("march", "n")]
        assert keys == ["march%1:04:00::", "march%1:10:00::", "march%1:28:00::"]
        assert inventory.first_sense("March", "NOUN") == "march%1:28:00::"
        assert inventory.first_sense("RIVER_BANK", "n") == "river_bank%1:17:00::"

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ("", r": .*\bempty\b"),
            ("a\tn\tx\tk\ts\tg\n", ", line 2: .*'rank' .*'x'"),
            ("a\tn\t1\tk\n", r", line 2: 4 .* 6 \(lemma, pos, rank"),
        ],
    )
    def test_damage(self, write, rows, message):
        with pytest.raises(FormatError, match=rf"/senses\.tsv{message}"):
            read_sense_inventory(write(self.HEADER + rows, name="senses.tsv"))

    def test_a_table_without_glosses(self, write):
        with pytest.raises(FormatError, match=r"line 2: .*'synset'; .*: lemma, pos"):
            read_sense_inventory(
                write("lemma\tpos\trank\tsense_key\na\tn\t1\tk\n", name="senses.tsv")
            )
