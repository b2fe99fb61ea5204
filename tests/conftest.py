"""Fixtures that tests of every folder may ask for, and the signals that all of them rely on."""

import signal

pytest_plugins = ["support.kafka_fixtures", "support.mosquitto_fixtures"]

# A shell that runs the suite in the background ignores SIGINT, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
