"""ASGI plumbing that the engine and the gateway share."""
