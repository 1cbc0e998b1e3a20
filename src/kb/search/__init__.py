"""From a query to ranked passages; no SQL and no HTTP."""
