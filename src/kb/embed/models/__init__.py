"""The model on disk: fetched, converted, exported, quantized."""
