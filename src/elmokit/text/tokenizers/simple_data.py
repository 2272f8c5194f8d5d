"""Word lists of the built-in tokenizer."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _capitalized(text: str) -> frozenset[str]:
    # "Inc", "INC", "Ph.D", "PH.D": a letter after a full stop is a capital.
    parts = (word.split(".") for word in text.split())
    return frozenset(".".join(part.capitalize() for part in word) for word in parts) | _words(
        text.upper()
    )


def _any_case(text: str) -> frozenset[str]:
    return _words(text) | _capitalized(text)


TITLES = _capitalized(
    """mr mrs ms messrs mme mlle dr drs prof rev hon gen col maj capt cmdr lt sgt cpl pvt adm gov
    sen rep reps pres supt det insp fr msgr st ste mt ft hrh ald asst assoc dept univ brig
    comdr pt"""
) | _any_case("v vs viz cf e.g i.e ca approx attn esp resp incl lit")
"""Abbreviations before names and the like: no sentence ends after them."""

REFERENCES = _capitalized("no art sec ch ed op") | _any_case(
    "nos pp p vol vols fig figs chap eq eds nr"
)
"""Abbreviations before a number; some are also words ("No.")."""

ABBREVIATIONS = _capitalized(
    """inc co corp ltd llc bros jr sr esq ave blvd rd hwy jan feb mar apr jun jul aug sep sept
    oct nov dec mon tue tues wed thu thur thurs fri sat sun dep ariz ark calif colo conn fla
    ill ind kan mass mich minn miss mont neb nev okla ore tenn tex wash wis wyo pty plc litt
    phil max"""
) | _any_case("etc al a.m p.m m.d ph.d b.a m.a u.s u.k u.n u.s.a d.c est misc tel ext lbs oz")
"""Abbreviations after which a sentence may end or continue."""

SENTENCE_STARTERS = _words(
    """The In He She It This These They A An At As On For His Her Its But And However There After
    When While With During By From If We I You That Those Although Since Some Many Most One
    Two Also To Their Our My What Who How Why Where Another Other Under Both Not Such
    Despite Because According Later Then Thus Today Each All Only Several Over Until Before
    Between Through So Yet No Or Here Please Thanks Let Unlike Once Even Following Within
    Upon Among Additionally Furthermore Moreover Therefore Instead Nevertheless"""
)
"""Capitalized words that, after an abbreviation, most likely start a sentence."""

CONTRACTIONS = {
    **dict.fromkeys(("dont", "wont", "aint"), 2),
    **dict.fromkeys(_words("cannot gonna gotta wanna gimme lemme didnt isnt wasnt arent hasnt"), 3),
    **dict.fromkeys(("doesnt", "havent", "werent"), 4),
    **dict.fromkeys(("couldnt", "wouldnt"), 5),
    "shouldnt": 6,
}
"""Contractions without apostrophe, and where to split them ("its", "cant" are words)."""

PREFIXES = _words(
    """e non mid pre anti re post co over pro multi ex sub semi neo psycho socio cross counter
    intra inter micro macro ultra un pan quasi pseudo proto meta mega mini hyper extra trans
    bi tri uni"""
)
"""Prefixes that keep their hyphen, as in EWT."""

UNITS = _words(
    "am pm AM PM k K m b km cm mm kg mg mph kb mb gb KB MB GB hz Hz kHz MHz GHz ft lb lbs oz"
)
"""Units split from the number before them."""

CLOSERS = "\"'”’)]}»›」』》〉】）］｝"
"""Quotes and brackets that may follow the end of a sentence."""
OPENERS = "\"'“‘([{«‹「『《〈【（［｛¿¡`*•-–—"
"""Marks that may precede the first word of a sentence."""
STRONG_ENDS = "!?…。！？｡؟।॥‼⁇⁈⁉።"
"""Marks that end a sentence by themselves."""
NEVER_FIRST = ",;:.)]}"
"""No sentence starts with one of these."""
