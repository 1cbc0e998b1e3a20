"""What is done to a knowledge base as a whole: examined, mended, backed up, restored, exported and imported."""
