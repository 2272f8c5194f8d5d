import time

import pytest

from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.tokenizers.simple import SimpleTokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return SimpleTokenizer("en")


def split(text):
    return text.split(" ")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("He didn't; I can't, won’t!", "He did n't ; I ca n't , wo n’t !"),
        ("Mary's dog, the students' books", "Mary 's dog , the students ' books"),
        ("I'm sure you'll've DON'T", "I 'm sure you'll 've DO N'T"),
        ("I cannot. Gonna go", "I can not . Gon na go"),
        ("a 15-year-old anti-war e-mail", "a 15 - year - old anti-war e-mail"),
        ("rock'n'roll by O'Neill", "rock'n'roll by O'Neill"),
        ("Dr. J. R. Smith Jr. (Inc.)", "Dr. J. R. Smith Jr. ( Inc . )"),
        ("the U.S. Army, e.g. at 5 p.m. on", "the U.S. Army , e.g. at 5 p.m. on"),
        ("$5.50, US$6 or 10% of 200,000", "$ 5.50 , US$ 6 or 10 % of 200,000"),
        ("11:30 on 9/11, 713-853-3989", "11:30 on 9/11 , 713-853-3989"),
        ("5pm 10km 1990s 1980's 3rd H2O", "5 pm 10 km 1990s 1980 's 3rd H2O"),
        ("1914–18 and/or AT&T's C++", "1914 – 18 and / or AT&T 's C++"),
        ("see https://x.org/a_b?c=d.", "see https://x.org/a_b?c=d ."),
        ("write me@x.co.uk, @you #tag a.doc", "write me@x.co.uk , @you #tag a.doc"),
        ("wait... what?! no!!! -- yes", "wait ... what ?! no !!! -- yes"),
        ("(\"quoted\") ``old'' “new” ok :)", "( \" quoted \" ) `` old '' “ new ” ok :)"),
        ("vitamin C.", "vitamin C ."),
        ("in the U.S.", "in the U.S ."),
        ("No. 5 is pp. 3", "No. 5 is pp. 3"),
        # tokenized text is left alone
        ("He did n't say ' s . Mr. X 's", "He did n't say ' s . Mr. X 's"),
        # other scripts
        ('한국어(Korean)는 "어렵다"고 했다.', '한국어 ( Korean ) 는 " 어렵다 " 고 했다 .'),
        ("3.1운동은 2,000명이 C#의 ㅋㅋ", "3.1운동은 2,000명이 C# 의 ㅋㅋ"),
        ("大韓民國とコーヒーを飲む", "大 韓 民 國 と コーヒー を 飲 む"),
        ("मैं हूँ। ما اسمك؟ ฉันรัก", "मैं हूँ । ما اسمك ؟ ฉันรัก"),
        ("e\u0301te\u0301 x\u00ady", "e\u0301te\u0301 x\u00ady"),
        ("👨‍👩‍👧👍🏽 🇰🇷🇺🇸", "👨‍👩‍👧 👍🏽 🇰🇷 🇺🇸"),
        ("a\u200bb\ufeff c", "a b c"),
    ],
)
def test_tokens(tokenizer, text, tokens):
    assert tokenizer.tokenize(text) == split(tokens)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("He left. She stayed.", ["He left .", "She stayed ."]),
        ("Mr. J. R. Smith met Dr. Who. Then", ["Mr. J. R. Smith met Dr. Who .", "Then"]),
        ("In the U.S. Army. In the U.S. The", ["In the U.S. Army .", "In the U.S .", "The"]),
        ("It is 3.5 now. 2 come.", ["It is 3.5 now .", "2 come ."]),
        ("1. First item. 2. Second", ["1 . First item .", "2 . Second"]),
        ('He said, "Go." Then "No!" he said.', ['He said , " Go . "', 'Then " No ! " he said .']),
        ('He said , " Go . " Then', ['He said , " Go . "', "Then"]),
        ('He said " no " again . " Yes " Then', ['He said " no " again .', '" Yes " Then']),
        ("(He left.) She did.", ["( He left . )", "She did ."]),
        ("What? no way! ok.", ["What ? no way !", "ok ."]),
        ("Univ. of Ulm. See No. 5 and p. 3.", ["Univ. of Ulm .", "See No. 5 and p. 3 ."]),
        ("it ended.The end", ["it ended .", "The end"]),
        ("Use java.lang.String now", ["Use java.lang.String now"]),
        ("one\n\ntwo. three", ["one", "two .", "three"]),
        ("그는 갔다. 나는 왔다.그래", ["그는 갔다 .", "나는 왔다 .", "그래"]),
        ('"갔다."라고 했다. 2020. 3. 5. 봄', ['" 갔다 . " 라고 했다 .', "2020 . 3 . 5 .", "봄"]),
        ("我走。你好！再见", ["我 走 。", "你 好 ！", "再 见"]),
        ("यह है। वह", ["यह है ।", "वह"]),
        ("", []),
        (" \n\t", []),
    ],
)
def test_sentences(tokenizer, text, sentences):
    assert tokenizer.sentences(text) == [split(sentence) for sentence in sentences]


def test_version_1_knows_full_width_ends_only(caplog):
    text = "你好!我们走吧?好。再见"
    assert len(SimpleTokenizer("en").sentences(text)) == 4
    earlier = build_tokenizer(TokenizerConfig(name="simple", version="1"))
    assert earlier.version == "1"
    assert len(earlier.sentences(text)) == 2
    assert len(earlier.sentences("你好！我们走吧？好。再见")) == 4
    assert not caplog.records


@pytest.mark.parametrize("method", ["sentences", "tokenize"])
def test_time_is_linear_in_the_length_of_a_line(method, without_type_checks):
    """Sentences without a space between them once moved the rest of the line, each of them."""

    def seconds(num_bytes):
        line, found = "by.The on " * (num_bytes // 10), []
        for _ in range(2):
            begin = time.process_time()
            getattr(SimpleTokenizer("en"), method)(line)
            found.append(time.process_time() - begin)
        return min(found)

    assert seconds(1_000_000) < 40 * seconds(100_000)  # 10 if linear, 100 if quadratic


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("de", "Am 3. Mai kam er. Es regnete.", ["Am 3. Mai kam er .", "Es regnete ."]),
        ("de", "Rund 5 Mio. Euro bzw. 2 Mrd. Yen.", ["Rund 5 Mio. Euro bzw. 2 Mrd. Yen ."]),
        ("de", "Es sind 5 Mio. Das war viel.", ["Es sind 5 Mio .", "Das war viel ."]),
        ("de", "Friedrich II. von Ulm, z.B. hier.", ["Friedrich II. von Ulm , z.B. hier ."]),
        ("de", "Das war 1995. Dann kam er.", ["Das war 1995 .", "Dann kam er ."]),
        ("de", "Er hat's. Ottos Abk. für etwas.", ["Er hat's .", "Ottos Abk . für etwas ."]),
        ("fr", "L'an qu’il a vu. M. Dupont dort.", ["L' an qu’ il a vu .", "M. Dupont dort ."]),
        ("fr", "C'est aujourd'hui, l' an neuf.", ["C' est aujourd'hui , l' an neuf ."]),
        ("tr", "Ankara'da Dr. Ali 20. yüzyılda.", ["Ankara'da Dr. Ali 20. yüzyılda ."]),
        ("tr", "1980'de II. Mehmet geldi. O iyi.", ["1980'de II. Mehmet geldi .", "O iyi ."]),
        ("hi", "डॉ. शर्मा आए। वे गए।", ["डॉ. शर्मा आए ।", "वे गए ।"]),
        ("", "Dr. Smith can't, Mary's etc. so.", ["Dr .", "Smith can't , Mary's etc . so ."]),
        ("", "Initialen wie J. Smith bleiben.", ["Initialen wie J. Smith bleiben ."]),
    ],
)
def test_each_language_has_its_abbreviations(language, text, sentences):
    tokenizer = SimpleTokenizer(language)
    found = tokenizer.sentences(text)
    assert found == [split(sentence) for sentence in sentences]
    assert tokenizer.version == ("3" if not language else f"3, {language}")
    for tokens in found:  # tokenized text is left alone
        assert tokenizer.tokenize(" ".join(tokens)) == tokens
