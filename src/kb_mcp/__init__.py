"""The MCP gateway: it uses the engine only over HTTP."""
