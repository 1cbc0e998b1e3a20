"""The queue's loop."""
