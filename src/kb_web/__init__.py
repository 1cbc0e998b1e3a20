"""The web interface, which uses the engine's API like any other client."""
