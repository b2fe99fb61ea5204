"""The settings of the sinks as their tests write them, and what is said when they are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bridge.config import Config, load
from sinks.kafka import KafkaSettings
from sinks.mqtt import MqttSettings
from sinks.webhook import WebhookSettings


def kafka(**keys: Any) -> KafkaSettings:
    given = {"type": "kafka", "bootstrap_servers": ["127.0.0.1:9092"]}
    return KafkaSettings.model_validate(given | keys)


def mqtt(**keys: Any) -> MqttSettings:
    return MqttSettings.model_validate({"type": "mqtt", "host": "127.0.0.1"} | keys)


def webhook(**keys: Any) -> WebhookSettings:
    url = "https://pager.example/hooks/T0K3N?access_token=t0p"
    return WebhookSettings.model_validate({"type": "webhook", "url": url} | keys)


def complaint(configured: Callable[..., object], **keys: Any) -> str:
    """The one key that is wrong, and the sentence about it, which quotes no secret."""
    with pytest.raises(ValidationError) as refused:
        configured(**keys)
    [error] = refused.value.errors()
    assert "s3cret" not in error["msg"]
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}"


def loaded(folder: Path, text: str) -> Config:
    """The configuration in a file with this text."""
    file = folder / "config.yaml"
    file.write_text(text)
    return load(file, {})
