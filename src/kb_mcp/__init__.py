"""The MCP gateway: a stranger to the engine that speaks HTTP with it."""
