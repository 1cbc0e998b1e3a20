"""Shared parts of all commands: calls, settings, output, exit codes."""
