from elmokit.embed.numbered_lines import NumberedLines


def test_blank_lines_are_lines_and_numbers_go_on_through_the_files(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_bytes(b"\xef\xbb\xbfone\r\n\n  \n")
    second.write_bytes("배 를\u2028\x0bx".encode())
    text = NumberedLines([first, second])
    assert list(text) == [(0, "one"), (1, ""), (2, "  "), (3, "배 를\u2028\x0bx")]
    assert text.count == 4


def test_a_shard_has_every_nth_line_and_a_hash_of_its_own(tmp_path):
    (tmp_path / "a.txt").write_text("a\nb\nc\nd\ne\n")
    shards = [NumberedLines(tmp_path / "a.txt", shard=(number, 2)) for number in range(2)]
    assert list(map(list, shards)) == [[(0, "a"), (2, "c"), (4, "e")], [(1, "b"), (3, "d")]]
    assert shards[0].num_bytes == shards[0].total_bytes == 10
    assert shards[0].sha256() != shards[1].sha256()
