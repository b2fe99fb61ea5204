"""`seb check --connect`: the receiver answers, and consents where it has to. Nothing is posted."""

from bridge.plugins import Place
from sinks.webhook.connection import client
from sinks.webhook.delivery import OpenSink
from sinks.webhook.settings import WebhookSettings


async def check_sink(settings: WebhookSettings, place: Place) -> str:
    """Return one sentence that says what works. Raises `Unavailable` as sending would."""
    async with client(settings) as http:
        session = OpenSink.begin(settings, place, http)
        line = await session.connect()
        how = "over TLS" if line.target.secure else "without TLS"
        reached = f"reached {line.target.origin} {how}"
        if session.consent is None:
            # Any answer will do: with TLS 1.3 a refused certificate shows only now.
            answer = await line.ask("OPTIONS", {})
            return f"{reached} (it answered {answer.status} to OPTIONS); nothing was posted"
        agreed = "agrees to" if session.consent.given else "does not agree to"
        rate = session.consent.rate
        pace = f"at most {rate} requests a minute" if rate else "any number of requests"
        return f"{reached}; it {agreed} the handshake: {pace}; nothing was posted"
