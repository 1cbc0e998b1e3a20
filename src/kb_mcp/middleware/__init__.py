"""What every MCP call passes through."""
