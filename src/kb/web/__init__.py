"""The pages for people, a client of the engine's API like any other."""
