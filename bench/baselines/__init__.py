"""Small programs that use the raw libraries as an expert would, as durable as the bridge."""
