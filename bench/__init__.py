"""Speed and quality, measured."""
