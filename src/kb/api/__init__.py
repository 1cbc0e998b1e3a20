"""The wire: what the engine and its clients share."""
