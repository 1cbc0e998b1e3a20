"""Files and folders on their way to the engine."""
