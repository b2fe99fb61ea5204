"""Fixtures that tests of every folder may ask for."""

pytest_plugins = ["support.kafka_fixtures", "support.mosquitto_fixtures"]
