from elmokit.inference.distinct_words import find_distinct_tokens


def test_every_distinct_word_is_numbered_once():
    tokens = find_distinct_tokens([["a", "b", "a"], [], ["b", "</S>"]])
    assert tokens.words == ["<S>", "</S>", "a", "b"]
    assert [s.tolist() for s in tokens.sentences] == [[0, 2, 3, 2, 1], [0, 1], [0, 3, 1, 1]]
