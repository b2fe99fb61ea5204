"""Names that senders misspell: near misses of a word, and what marks a CloudEvent."""

import re
import unicodedata

_PREFIXES = ("ce-", "ce_")
_VERSION = re.compile(r"(?:ce|cloudevents?)?spec(?:ification)?version|(?:ce|cloudevents?)version")
_LONGEST = 64


def plain(name: str) -> str:
    """The letters and digits of a name, without regard to case, separators and invisible marks."""
    folded = unicodedata.normalize("NFKC", name[:_LONGEST]).casefold()
    return "".join(letter for letter in folded if letter.isalnum())


def one_slip(name: str, word: str) -> bool:
    """Whether they are equal but for one letter too many, missing or wrong, or two exchanged."""
    if abs(len(name) - len(word)) > 1:
        return False
    if len(name) == len(word):
        wrong = [at for at, letter in enumerate(name) if letter != word[at]]
        if len(wrong) == 2:
            first, second = wrong
            return (name[first], name[second]) == (word[second], word[first])
        return len(wrong) < 2
    short, long = sorted((name, word), key=len)
    return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))


def marks_cloudevent(name: str) -> bool:
    """Whether a header, or a field at the top of a body, is a sign of a CloudEvent."""
    if name.casefold().startswith(_PREFIXES):
        return True
    found = plain(name)
    return _VERSION.fullmatch(found) is not None or one_slip(found, "specversion")
