import pytest


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("CP949", "나는 강가의 은행 나무 밑에서 은행 업무를 보았다. 똠방각하 펲시콜라 (2022)"),
        ("UTF-16LE", "나는강가의 은행나무밑에서 은행업무를보았다"),
        ("SHIFT_JIS", "川のほとりの銀行で、私はコーヒーを飲みながら待っていた。"),
        ("EUC-JP", "川のほとりの銀行で、私はコーヒーを飲みながら待っていた。"),
        ("GB18030", "我在河边的银行门口等了一个小时,天气很冷,路上没有人。"),
        ("BIG5", "我在河邊的銀行門口等了一個小時,天氣很冷,路上沒有人。"),
        ("CP1251", "Я ждал у банка на берегу реки, было холодно."),
        ("CP1252", "The naïve café owner’s “résumé” – nothing else here is odd."),
        ("CP1252", "Der Fluß trat über die Ufer, als ich zur Bank fuhr."),
        ("CP1252", "Le café était fermé – à côté de la rivière, où nous avons attendu."),
        ("UTF-16BE", "나는강가의 은행나무밑에서 은행업무를보았다"),
        ("UTF-16LE", "The bank by the river was closed when we came."),
        ("UTF-16BE", "The bank by the river was closed when we came."),
    ],
)
def test_encodings_are_recognized(encoding, text):
    from elmokit.files.encodings import guess_encoding

    assert guess_encoding((text + "\n").encode(encoding) * 3) == encoding


@pytest.mark.parametrize(
    "sample",
    [
        b"",
        b"ASCII",
        bytes(range(128, 160)) * 9,
        bytes(50),
        b"H\x89\xe5\x01\x02" * 9,
    ],
)
def test_no_guess_without_evidence(sample):
    from elmokit.files.encodings import guess_encoding

    assert guess_encoding(sample) is None
