"""The collections surface (requirements C-1 to C-6): the default tools for agents that think in collections.

A collection is a tag `collection:<name>`, of which a document has one. This surface wraps the default one, turns the
parameter `collection` into the tag on the way in, and the tag into a field `collection` on the way out.
"""
