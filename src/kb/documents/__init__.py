"""The rules of the application for content that is added, changed or deleted."""
