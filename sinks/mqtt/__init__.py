"""CloudEvents as MQTT messages, acknowledged by the server; with paho."""
