"""The worker that processes the queue."""
