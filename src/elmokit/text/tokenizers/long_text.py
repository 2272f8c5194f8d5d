"""Long lines in pieces, for libraries whose time grows faster than linearly."""


def cut_long_text(text: str, max_characters: int) -> list[str]:
    """Cut text into pieces of bounded length, which joined are the text.

    A piece ends after a full stop in its second half, else at white space there, else anywhere.
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
