"""Long lines in pieces, for libraries whose time grows faster than the length of a text."""


def cut_long_text(text: str, max_characters: int) -> list[str]:
    """Cut text into pieces of bounded length.

    Args:
        text: any text.
        max_characters: length above which text is cut.

    Returns:
        Pieces of at most that length, cut after a full stop where there is one in the second half,
        else at white space, else anywhere. Joined they are the text.
    """
    pieces: list[str] = []
    start = 0
    while len(text) - start > max_characters:
        middle, limit = start + max_characters // 2, start + max_characters
        cut = max(text.rfind(mark, middle, limit) + len(mark) for mark in (". ", "? ", "! "))
        if cut <= middle + 1:
            cut = text.rfind(" ", middle, limit) + 1
        if cut <= middle:
            cut = limit
        pieces.append(text[start:cut])
        start = cut
    return [*pieces, text[start:]]
