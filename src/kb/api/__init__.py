"""Models, errors and names that the engine and its clients share."""
