import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elmokit.vectors.vector_files import read_vectors, write_vectors

words = st.text(
    st.characters(blacklist_characters=" \n\0", blacklist_categories=["Cs"]), min_size=1, max_size=6
)
numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def vectors(draw):
    some = draw(st.lists(words, min_size=1, max_size=8, unique=True))
    dim = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(numbers, min_size=dim, max_size=dim),
                         min_size=len(some), max_size=len(some)))  # fmt: skip
    return some, np.array(rows, dtype=np.float32).reshape(len(some), dim)


@given(vectors(), st.sampled_from(["v.bin", "v.txt"]))
def test_what_is_written_is_read_bit_for_bit(pair, name):
    some, values = pair
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        write_vectors(path, some, values)
        found = read_vectors(path)
        part = read_vectors(path, only=some[:1])
    assert found.words == some
    assert found.values[2:].tobytes() == values.tobytes()
    wanted = {some[0], some[0].lower()}
    assert part.words == [word for word in some if word in wanted]
