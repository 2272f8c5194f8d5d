from elmokit.embed.numbered_lines import NumberedLines


def test_blank_lines_are_lines_and_numbers_go_on_through_the_files(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_bytes(b"\xef\xbb\xbfone\r\n\n  \n")
    second.write_bytes("배 를\u2028\x0bx".encode())
    text = NumberedLines([first, second])
    assert list(text) == [(0, "one"), (1, ""), (2, "  "), (3, "배 를\u2028\x0bx")]
    assert text.count == 4
