"""What stands around every MCP call."""
