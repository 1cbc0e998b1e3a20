"""How programs speak to the engine: one client, three transports."""
