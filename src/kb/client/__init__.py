"""Access to the engine for programs: one client, three transports."""
