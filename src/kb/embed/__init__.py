"""Text to vectors."""

import os

# From 1.29 ONNX Runtime reports to its makers unless it is told not to before it is loaded (requirement S-6).
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
