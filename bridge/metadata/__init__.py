"""Requests to Azure: the wire format, the request budget, and where the endpoint is."""
