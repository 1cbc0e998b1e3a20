"""What every command needs: calls, settings, output, exit codes."""
