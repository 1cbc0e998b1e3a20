"""The limited process that runs the readers."""
