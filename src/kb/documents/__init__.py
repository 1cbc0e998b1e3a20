"""The rules of the application: what becomes of content that comes in, changes or goes."""
