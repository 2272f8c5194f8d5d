def test_lines_across_pieces_are_joined():
    from elmokit.corpus.file_reader import split_lines

    data = b"one\n\nthree three\nfour"
    for size in range(1, len(data) + 1):
        pieces = [data[i : i + size] for i in range(0, len(data), size)]
        assert list(split_lines(pieces, 8)) == [b"one", b"", None, b"four"]
