"""The tools, prompts and resources that agents see."""
