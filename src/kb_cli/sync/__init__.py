"""Send files and folders to the engine."""
