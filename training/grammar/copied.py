"""Slots that a translation copies letter by letter: codes, file names, URLs, placeholders, Latin brands."""

from __future__ import annotations

import string
from random import Random

Pair = tuple[str, str]

_STEMS = (
    "report invoice manual backup config order schedule photo notes list budget contract drawing log update readme "
    "data export summary archive index main test setup image video plan result"
).split()
_ENDINGS = "pdf txt csv docx xlsx png jpg zip json xml log py html odt onnx".split()
_HOSTS = "example.com example.org docs.example.net shop.example.com www.example.org support.example.com".split()
_NAMES = "name count file user path date total page size error title city item value order_id".split()
_SYLLABLES = (
    "nor va tek lu mo ri son ta ke zel pro fi ver da lin ex ora no mi cor pa tri sol ven qua bel ser to ra di um al"
).split()


def code(rng: Random) -> Pair:
    letters = "".join(rng.choice(string.ascii_uppercase) for _ in range(rng.randint(1, 3)))
    digits = "".join(rng.choice(string.digits) for _ in range(rng.randint(2, 5)))
    text = rng.choice([f"{letters}-{digits}", f"{letters}{digits}", f"{letters}-{digits}{rng.choice('ABCDEFX')}"])
    return text, text


def file_name(rng: Random) -> Pair:
    stem = rng.choice(_STEMS)
    if rng.random() < 0.4:
        stem += rng.choice([f"_{rng.randint(1, 2035)}", f"-{rng.choice(_STEMS)}", f"_v{rng.randint(1, 9)}"])
    text = f"{stem}.{rng.choice(_ENDINGS)}"
    return text, text


def url(rng: Random) -> Pair:
    path = rng.choice(["", f"/{rng.choice(_STEMS)}", f"/{rng.choice(_STEMS)}/{rng.randint(1, 999)}",
                       f"/{rng.choice(_STEMS)}.html"])  # fmt: skip
    text = f"https://{rng.choice(_HOSTS)}{path}"
    return text, text


def email(rng: Random) -> Pair:
    text = f"{rng.choice([*_STEMS, 'info', 'sales', 'support', 'service'])}@{rng.choice(_HOSTS)}"
    return text, text


def placeholder(rng: Random) -> Pair:
    name = rng.choice(_NAMES)
    text = rng.choice(
        [f"{{{name}}}", f"{{{name}}}", "%s", "%d", f"${{{name}}}", f"%({name})s", f"{{{rng.randint(0, 3)}}}"]
    )
    return text, text


def brand(rng: Random) -> Pair:
    text = "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 3))).capitalize()
    return text, text


COPIED = {"code": code, "url": url, "file": file_name, "email": email, "ph": placeholder, "brand": brand}
"""Slot kinds that are copied: kind -> maker."""
