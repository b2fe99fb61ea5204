"""How long a batch may take, by the keys of its sink."""

from bridge.plugins import SinkSettings
from sinks._limit import batch_limit


def test_a_batch_has_its_results_before_the_bridge_stops_waiting():
    settings = SinkSettings.model_validate({"type": "any", "retry": {"timeout": "10s"}})
    assert batch_limit(settings) == 9.0
