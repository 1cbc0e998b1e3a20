"""Sign-in over OAuth 2.1 for clients that cannot send a key.

The MCP SDK's handlers speak the protocol. The engine keeps the grants and decides about codes and tokens.
"""
