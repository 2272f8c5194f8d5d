"""What the built-in tokenizer knows of languages, and what holds in all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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


@dataclass(frozen=True, kw_only=True)
class Language:
    """What is not the same in all languages; without a language none of it applies."""

    titles: frozenset[str] = frozenset()
    """Abbreviations before names and the like: no sentence ends after them."""
    references: frozenset[str] = frozenset()
    """Abbreviations before a number; some are also words ("No.")."""
    abbreviations: frozenset[str] = frozenset()
    """Abbreviations after which a sentence may end or continue."""
    starters: frozenset[str] = frozenset()
    """Capitalized words that, after an abbreviation, most likely start a sentence."""
    has_ordinals: bool = False
    """Whether a full stop makes a number an ordinal ("3. Mai", "II. Mehmet")."""
    elisions: str = ""
    """Pattern of what is split off at the start of a word, with its apostrophe."""
    contractions: Mapping[str, int] = field(default_factory=dict)
    """Contractions without apostrophe, and where to split them ("its", "cant" are words)."""
    prefixes: frozenset[str] = frozenset()
    """Prefixes that keep their hyphen."""


_ENGLISH = Language(
    titles=_capitalized(
        """mr mrs ms messrs mme mlle dr drs prof rev hon gen col maj capt cmdr lt sgt cpl pvt adm
        gov sen rep reps pres supt det insp fr msgr st ste mt ft hrh ald asst assoc dept univ brig
    comdr pt"""
    )
    | _any_case("v vs viz cf e.g i.e ca approx attn esp resp incl lit"),
    references=_capitalized("no art sec ch ed op")
    | _any_case("nos pp p vol vols fig figs chap eq eds nr"),
    abbreviations=_capitalized(
        """inc co corp ltd llc bros jr sr esq ave blvd rd hwy jan feb mar apr jun jul aug sep sept
    oct nov dec mon tue tues wed thu thur thurs fri sat sun dep ariz ark calif colo conn fla
    ill ind kan mass mich minn miss mont neb nev okla ore tenn tex wash wis wyo pty plc litt
    phil max"""
    )
    | _any_case("etc al a.m p.m m.d ph.d b.a m.a u.s u.k u.n u.s.a d.c est misc tel ext lbs oz"),
    starters=_words(
        """The In He She It This These They A An At As On For His Her Its But And However There
        After When While With During By From If We I You That Those Although Since Some Many Most
        One Two Also To Their Our My What Who How Why Where Another Other Under Both Not Such
    Despite Because According Later Then Thus Today Each All Only Several Over Until Before
    Between Through So Yet No Or Here Please Thanks Let Unlike Once Even Following Within
    Upon Among Additionally Furthermore Moreover Therefore Instead Nevertheless"""
    ),
    contractions={
        **dict.fromkeys(("dont", "wont", "aint"), 2),
        **dict.fromkeys(
            _words("cannot gonna gotta wanna gimme lemme didnt isnt wasnt arent hasnt"), 3
        ),
        **dict.fromkeys(("doesnt", "havent", "werent"), 4),
        **dict.fromkeys(("couldnt", "wouldnt"), 5),
        "shouldnt": 6,
    },
    prefixes=_words(
        """e non mid pre anti re post co over pro multi ex sub semi neo psycho socio cross counter
    intra inter micro macro ultra un pan quasi pseudo proto meta mega mini hyper extra trans
    bi tri uni"""
    ),  # as in EWT
)
_GERMAN = Language(
    titles=_any_case(
        """dr prof hr fr hrn dipl ing mag st gebr frl bzw vgl ca evtl ggf inkl exkl sog bspw insb
        insbes einschl zzgl bzgl geb gest verh ehem eig eigtl gem lt durchschn d.h z.b u.a i.d.r
        z.t u.u z.zt s.o s.u v.a o.ä v.chr n.chr"""
    ),
    references=_any_case("nr nrn abs art bd bde kap abb tab anm aufl abschn ziff hrsg par"),
    abbreviations=_any_case(
        """mio mrd usw etc tel str jh jhd jhdt std sek max min jun sen jan feb febr mrz apr jul aug
        sept okt nov dez u.dgl u.v.m e.v a.d o.g"""
    ),
    starters=_words(
        """Der Die Das Den Dem Des Ein Eine Einen Einem Einer Er Sie Es Wir Ich Ihr Man Im In Am
        An Auf Aus Bei Beim Mit Nach Von Vom Vor Zu Zum Zur Für Durch Um Über Unter Gegen Ohne
        Und Aber Doch Denn Oder Auch Dabei Dafür Dagegen Daher Damit Danach Dann Dazu Darauf
        Deshalb Diese Dieser Dieses Diesen Dort Hier Jedoch Nun Nur Seit Sein Seine So Sowohl
        Später Trotz Während Wenn Weil Obwohl Als Wie Was Wer Wo Warum Zudem Außerdem Nachdem
        Bis Alle Allerdings Insgesamt Heute Jetzt Schon Noch Nicht"""
    ),
    has_ordinals=True,
)
_FRENCH = Language(
    titles=_any_case("mm mme mmes mlle mlles dr drs pr me mgr st ste sts cf ex env prof gal col"),
    references=_any_case("no nos art vol fig chap pp éd tél réf coll"),
    abbreviations=_any_case(
        "etc av apr janv févr juil sept oct nov déc bd hab j.-c c.-à-d n.b p.-s s.a"
    ),
    starters=_words(
        """Le La Les Un Une Des Il Elle Ils Elles On Nous Vous Je Tu Ce Cet Cette Ces Cela En Dans
        Pour Par Sur Sous Avec Sans Mais Et Ou Où Qui Que Quand Comme Si Après Avant Depuis
        Selon Au Aux Cependant Toutefois Ainsi Alors Puis Enfin Son Sa Ses Leur Leurs Mon Ma
        Notre Du De Pendant Lors Plus Ensuite Pourtant Malgré Chaque Tous Tout Toute Toutes"""
    ),
    elisions=r"(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['’]",
)
_TURKISH = Language(
    titles=_any_case(
        """dr prof doç av sn st yrd op alb org gen müh uzm öğr arş ord hz bkz örn ör krş yak çev
        haz yay"""
    ),
    references=_any_case("no nu sf cilt böl"),
    abbreviations=_any_case(
        "vb vs vd yy mah cad sok sk blv apt tel ltd şti a.ş t.c m.ö m.s ort maks bul"
    ),
    starters=_words(
        """Bu Bir O Şu Ancak Ama Ve Fakat Çünkü Daha Sonra Ayrıca İlk Her Onun Bunun Böylece Öte
        Bunlar Onlar Ben Biz Siz Sen Kendi Yine Hem Artık Eğer Ne Bazı Bütün Tüm En İki Hiç
        Şimdi Burada Bunu Onu Buna Ona Bundan Öyle Böyle"""
    ),
    has_ordinals=True,
)
_HINDI = Language(
    titles=_words("डॉ डा श्री श्रीमती प्रो कु पं सुश्री मो स्व ले"),
    references=_words("नं सं पृ क्र"),
    abbreviations=_words("ई.पू ई रु कि.मी कि.ग्रा मी से.मी बी.ए एम.ए"),
    starters=_words(
        """यह वह इस उस ये वे और लेकिन परंतु इसके उसके इन उन हम मैं आप एक जब तब तो इसलिए किंतु यदि अगर
        इसमें उन्होंने उसने इसका इसकी"""
    ),
)
LANGUAGES = {
    "": Language(), "en": _ENGLISH, "de": _GERMAN, "fr": _FRENCH, "hi": _HINDI, "tr": _TURKISH,
}  # fmt: skip
"""By ISO 639-1 code; the empty one stands for any other language."""
VERSION = "3"
"""Without a language."""


def version_of(language: str) -> str:
    return f"{VERSION}, {language}" if language else VERSION


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
