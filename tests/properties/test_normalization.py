import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.text.normalization import normalize

signs = st.text(
    st.sampled_from(
        "`'\"-LRBlrb\\/*a. –—―“”‘’´…\u00ad\u200b\u200c\u200d\u200e\u2060\ufeff\u0301\u0327\u1fef"
        "\uff07\uff40\uff9e\uff8a\uffa1ᄒᆞᆫ각कا\u094d\u064b\u0655👩"
    ),
    max_size=12,
)
any_text = signs | st.text(st.characters(), max_size=30)
profiles = st.sampled_from(["none", "NFC", "plain-1"])


@given(any_text, profiles)
@settings(max_examples=500)
def test_normalizing_twice_changes_nothing_more(text, form):
    once = normalize(text, form)
    assert normalize(once, form) == once


@given(any_text)
def test_plain_text_is_composed(text):
    plain = normalize(text, "plain-1")
    assert unicodedata.normalize("NFC", plain) == plain


@given(st.text(st.characters(max_codepoint=127, exclude_characters="`'\\-"), max_size=30))
def test_ordinary_ascii_is_left_alone(text):
    assert normalize(text, "plain-1") == text


@given(any_text)
def test_words_are_spelled_as_in_their_line(text):
    words = text.split()
    line = normalize(" ".join(words), "plain-1")
    assert line.split() == " ".join(normalize(word, "plain-1") for word in words).split()


marks = st.text(
    st.sampled_from("\u0301\u0323\u0344\u0f71\u0f73\u0327\u0308\u034f\u05b0"), max_size=80
)


@given(st.lists(st.tuples(st.text(max_size=3), marks), max_size=6))
def test_marks_of_a_long_text_are_ordered_as_in_a_short_one(parts):
    text = "".join(letter + run for letter, run in parts) + "x" * 1000
    assert normalize(text, "NFC") == unicodedata.normalize("NFC", text)
