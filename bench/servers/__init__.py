"""What the bridge and the baselines talk to: an endpoint, receivers and brokers on loopback."""
