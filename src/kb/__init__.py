"""kb: a fully local knowledge base for people and their AI agents."""

__version__ = "3.0.0"
