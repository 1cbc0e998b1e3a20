"""Text to vectors."""

import os

# Since 1.29, ONNX Runtime sends telemetry unless this is set before it is loaded (requirement S-6).
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
