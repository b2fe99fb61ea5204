"""Fixtures that tests of every folder may ask for, and the settings that all of them rely on."""

import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ["support.kafka_fixtures", "support.mosquitto_fixtures"]

# A shell that runs the suite in the background ignores SIGINT, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# On a busy machine any example may take long. That says nothing about the code.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
