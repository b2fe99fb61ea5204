import aiohttp
import yaml
from support.cloudevents import make

from bridge.demo.webhook import listening
from bridge.plugins import Place
from bridge.plugins.sinks import find_sink


async def test_the_pager_rings_only_for_the_sink():
    noted: list[str] = []
    async with listening(noted.append) as pager:
        [written] = yaml.safe_load(f"sinks:\n{pager.sink}")["sinks"].values()
        plugin = find_sink("webhook")
        async with plugin.open(plugin.settings.model_validate(written), Place()) as send:
            assert await send([make()]) == [None]
        async with aiohttp.ClientSession() as http:
            for headers in ({}, {"webhook-id": "1", "webhook-signature": "v1,AAAA v1,"}):
                async with http.post(pager.url, data=make().body, headers=headers) as answer:
                    assert answer.status == 401
    [said] = noted
    assert said.startswith("the pager rings: Reboot ")
    assert "scheduled; the signature is valid" in said
