"""Signatures, against public vectors and another library; and no forgery is accepted."""

import base64
import builtins
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import assume, given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from bridge.common.errors import Misconfigured
from bridge.common.signatures import (
    HEADERS,
    ID,
    MOST_SIGNATURES,
    SIGNATURE,
    TIMESTAMP,
    Mismatch,
    Signed,
    Unsigned,
    is_signed,
    read_key,
    sign,
    verify,
)

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
MESSAGE, THEN = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


_made = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SEED, PUBLIC = bytes(range(32)), _made.public_key().public_bytes_raw()
HMAC = read_key(SECRET)
PRIVATE, VERIFYING = read_key(f"whsk_{text(SEED)}"), read_key(f"whpk_{text(PUBLIC)}")
OTHER = [read_key(f"whsec_{text(bytes(32))}"), read_key(f"whpk_{text(bytes(range(1, 33)))}")]
SIGNERS = pytest.mark.parametrize(
    ("signing", "verifying"), [(HMAC, HMAC), (PRIVATE, VERIFYING), (PRIVATE, PRIVATE)]
)


def signed(key=HMAC, body=BODY):
    return sign([key], MESSAGE, THEN, body)


def refusal(headers, body=BODY, keys=(HMAC, VERIFYING)) -> str:
    with pytest.raises(Mismatch) as caught:
        verify(keys, headers, body)
    return str(caught.value)


def test_our_signature_matches_the_public_vector():
    assert signed() == {
        ID: MESSAGE,
        TIMESTAMP: str(THEN),
        SIGNATURE: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@given(st.text(max_size=300), st.binary(min_size=24, max_size=64))
def test_another_library_signs_and_verifies_as_we_do(said, raw):
    assume(_is_utf8(said))
    written, now = f"whsec_{text(raw)}", int(time.time())
    oracle, key = Webhook(written), read_key(written)
    ours = sign([key], "m-1", now, said.encode())
    assert oracle.sign("m-1", datetime.fromtimestamp(now, UTC), said) == ours[SIGNATURE]
    body = json.dumps(said)
    assert oracle.verify(body, sign([key], "m-1", now, body.encode())) == said


def _is_utf8(said: str) -> bool:
    return said.encode("utf-8", "ignore").decode() == said


@SIGNERS
def test_a_key_verifies_its_own_signature(signing, verifying):
    assert verify([verifying], signed(signing), BODY) == Signed(MESSAGE, THEN)


@SIGNERS
def test_any_change_is_noticed(signing, verifying):
    good = signed(signing)
    for changed in (
        {ID: f"{MESSAGE}x"},
        {TIMESTAMP: str(THEN + 1)},
        {TIMESTAMP: f"0{THEN}"},
        {SIGNATURE: good[SIGNATURE].replace("v1", "v2")},
        {SIGNATURE: good[SIGNATURE][:-8]},
        {SIGNATURE: ""},
    ):
        refusal({**good, **changed}, keys=[verifying])
    refusal(good, BODY + b" ", keys=[verifying])
    refusal(good, keys=OTHER)
    refusal(good, keys=[])


def test_a_signature_of_one_kind_does_not_verify_as_the_other():
    for good in (signed(), signed(PRIVATE)):
        version, _, encoded = good[SIGNATURE].partition(",")
        swapped = {"v1": "v1a", "v1a": "v1"}[version]
        refusal({**good, SIGNATURE: f"{swapped},{encoded}"})


def test_keys_rotate_by_listing_both_signatures_or_keeping_both_keys():
    both = sign([OTHER[0], HMAC, PRIVATE], MESSAGE, THEN, BODY)
    assert len(both[SIGNATURE].split()) == 3
    for key in (HMAC, VERIFYING, OTHER[0]):
        assert verify([key], both, BODY).id == MESSAGE
    assert verify([*OTHER, HMAC], signed(), BODY).timestamp == THEN


def test_headers_may_be_bytes_and_spelt_in_any_case():
    pairs = [(name.title(), value.encode()) for name, value in signed().items()]
    assert verify([HMAC], [("other", b"\xff"), *pairs], BODY).id == MESSAGE
    assert is_signed(pairs)
    assert not is_signed(pairs[:2])


class Counting:
    """A key that counts how often it is asked, and recognizes one signature."""

    version = "v1"

    def __init__(self, recognizes: bytes = b"") -> None:
        self.recognizes = recognizes
        self.checks = 0

    def made(self, signature, content):
        self.checks += 1
        return signature == self.recognizes


def listing(count: int) -> dict[str, str]:
    made = [f"v1,{text(b'%d' % number)}" for number in range(count)]
    return {**signed(), SIGNATURE: " ".join(made)}


def test_only_the_first_four_signatures_of_a_message_are_checked():
    keys: list[Any] = [Counting(b"4"), Counting()]
    assert "none of the known keys" in refusal(listing(16), keys=keys)
    assert [key.checks for key in keys] == [MOST_SIGNATURES, MOST_SIGNATURES] == [4, 4]
    found: list[Any] = [Counting(b"3")]
    assert verify(found, listing(16), BODY)


def test_unreadable_signatures_count_towards_the_four():
    key: Any = Counting(b"0")
    crowded = {**listing(1), SIGNATURE: "v1,?? v9,?? x y " + listing(1)[SIGNATURE]}
    assert "none of the known keys" in refusal(crowded, keys=[key])
    assert key.checks == 0


def test_the_first_match_ends_the_check():
    keys: list[Any] = [Counting(), Counting(b"1"), Counting(b"0")]
    assert verify(keys, listing(4), BODY)
    assert [key.checks for key in keys] == [4, 2, 0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({SIGNATURE: None}, "it is not signed"),
        ({ID: None}, "webhook-id"),
        ({ID: "a.b"}, "webhook-id"),
        ({ID: "a b"}, "webhook-id"),
        ({ID: "x" * 257}, "webhook-id"),
        ({TIMESTAMP: None}, "webhook-timestamp"),
        ({TIMESTAMP: "1614265330.0"}, "webhook-timestamp"),
        ({TIMESTAMP: "-1"}, "webhook-timestamp"),
        ({TIMESTAMP: " 1"}, "webhook-timestamp"),
        ({TIMESTAMP: "\u0661"}, "webhook-timestamp"),
        ({TIMESTAMP: "9" * 12}, "webhook-timestamp"),
        ({SIGNATURE: "v1,x" * 2000}, "too long"),
        ({SIGNATURE: "v1,not base64"}, "none of the known keys"),
        ({SIGNATURE: "v1"}, "none of the known keys"),
        ({SIGNATURE: "v1,é"}, "none of the known keys"),
    ],
)
def test_a_malformed_signature_is_a_mismatch(changes, said):
    changed = {name: value for name, value in {**signed(), **changes}.items() if value is not None}
    assert said in refusal(changed)


def test_an_unsigned_message_has_its_own_error():
    with pytest.raises(Unsigned):
        verify([HMAC], {}, BODY)


def test_a_repeated_or_non_ascii_header_is_a_mismatch():
    pairs = [(name, value.encode()) for name, value in signed().items()]
    assert "occurs twice" in refusal([*pairs, ("Webhook-Id", b"other")])
    assert "not ASCII" in refusal([*pairs[:2], (SIGNATURE, b"\xff")])


VALUES = st.text(max_size=60) | st.sampled_from(list(signed().values()))
NAMES = st.sampled_from([*HEADERS, "Webhook-Signature", "other"])


@pytest.mark.fuzz
@given(
    st.dictionaries(NAMES, VALUES), st.lists(st.tuples(NAMES, st.binary(max_size=60))), st.binary()
)
def test_nothing_but_a_mismatch_is_ever_raised(texts, pairs, body):
    assume(body != BODY)
    for headers in (texts, pairs):
        refusal(headers, body)


# --- keys ----------------------------------------------------------------------------------------


def test_a_private_key_may_come_with_its_public_half():
    whole = read_key(f"whsk_{text(SEED + PUBLIC)}")
    assert sign([whole], MESSAGE, THEN, BODY) == signed(PRIVATE)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "starts with whsec_"),
        ("secret", "starts with whsec_"),
        ("whsec_***", "must be base64"),
        ("whsec_é", "must be base64"),
        (f"whsec_{text(bytes(23))}", "24 to 64 bytes, not 23"),
        (f"whsec_{text(bytes(65))}", "24 to 64 bytes, not 65"),
        (f"whsk_{text(bytes(31))}", "32 or 64 bytes, not 31"),
        (f"whsk_{text(SEED + SEED)}", "do not match"),
        (f"whpk_{text(bytes(33))}", "32 bytes, not 33"),
    ],
)
def test_a_bad_key_is_refused_in_a_sentence_that_does_not_show_it(written, said):
    with pytest.raises(Misconfigured) as caught:
        read_key(written)
    assert said in str(caught.value)
    assert len(written) < 12 or written[8:] not in str(caught.value)


def test_a_public_key_cannot_sign_and_an_id_with_a_full_stop_cannot_be_signed():
    with pytest.raises(Misconfigured, match="cannot sign"):
        signed(VERIFYING)
    with pytest.raises(ValueError, match="full stop"):
        sign([HMAC], "a.b", THEN, BODY)


def test_no_key_is_ever_shown():
    for key in (HMAC, PRIVATE, VERIFYING):
        assert repr(key) == f"Key(version={key.version!r}, private={key.private})"


def test_ed25519_needs_its_library_and_hmac_does_not(monkeypatch):
    real = builtins.__import__

    def without(name, *more, **kwargs):
        if name.startswith("cryptography"):
            raise ModuleNotFoundError(name)
        return real(name, *more, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    read_key.cache_clear()
    assert read_key(SECRET) == HMAC
    with pytest.raises(Misconfigured, match=r"scheduled-events-bridge\[ed25519\]"):
        read_key(f"whpk_{text(PUBLIC)}")
