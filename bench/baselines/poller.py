"""The least that can poll: `python -m bench.baselines.poller URL [SINK]`.

With a sink, as JSON, a client of its library is connected.
"""

import asyncio
import json
import sys
from typing import Any

import aiohttp


async def connect(sink: dict[str, Any]) -> object:
    """A client of the sink's library, connected and idle."""
    if sink["type"] == "kafka":
        from aiokafka import AIOKafkaProducer  # noqa: PLC0415  only who needs it pays for it

        producer = AIOKafkaProducer(bootstrap_servers=sink["bootstrap_servers"], acks="all")
        await producer.start()
        return producer
    from paho.mqtt.client import Client  # noqa: PLC0415  only who needs it pays for it
    from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion  # noqa: PLC0415

    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.connect(sink["host"], sink["port"])
    client.loop_start()
    return client


async def main(url: str, sink: dict[str, Any] | None) -> None:
    async with aiohttp.ClientSession(headers={"Metadata": "true"}) as http:
        async with http.get(f"{url}/metadata/instance?api-version=2021-02-01") as answer:
            await answer.json()
        connected = None
        while True:
            async with http.get(f"{url}/metadata/scheduledevents?api-version=2020-07-01") as answer:
                print(await answer.json(), flush=True)
            connected = connected or (await connect(sink) if sink else "nothing")
            await asyncio.sleep(1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else None))
