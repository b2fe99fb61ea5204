"""What `seb check --connect` proves of a receiver, with and without a handshake."""

import pytest
from support.webhook_receiver import Receiver, says
from support.webhook_sending import checked

from bridge.plugins import Unavailable

ASKING = {"handshake": "required", "origin": "{vm_name}.bridge.example"}


def consents(**rate: str):
    return says(200, WebHook_Allowed_Origin="web-1.bridge.example", **rate)


async def test_a_check_without_tls_says_so(receiver: Receiver):
    assert "without TLS" in await checked(receiver)
    assert receiver.got == []
    assert len(receiver.asked) == 1


async def test_a_check_says_what_was_agreed_and_posts_nothing(receiver: Receiver):
    receiver.options = consents(WebHook_Allowed_Rate="100")
    said = await checked(receiver, **ASKING)
    assert said.endswith(
        "it agrees to the handshake: at most 100 requests a minute; nothing was posted"
    )
    receiver.options = consents()
    assert "any number of requests" in await checked(receiver, **ASKING)
    receiver.options = says(405)
    said = await checked(receiver, **{**ASKING, "handshake": "optional"})
    assert "does not agree to the handshake: at most 10 requests a minute" in said
    with pytest.raises(Unavailable, match="does not agree"):
        await checked(receiver, **ASKING)
    assert receiver.got == []
