"""CloudEvents posted to a URL, signed if configured; with aiohttp.

Read `settings` and its `options`, then `delivery` (a batch), `connection` (one request, with the
`credentials` of this moment) and `errors` (what a status means). `binding`, `urls` and `handshake`
are pure.
"""

from bridge.plugins import SinkPlugin
from sinks.webhook.check import check_sink
from sinks.webhook.delivery import open_sink
from sinks.webhook.settings import WebhookSettings

__all__ = ["WebhookSettings", "sink"]

sink = SinkPlugin(settings=WebhookSettings, open=open_sink, check=check_sink)
