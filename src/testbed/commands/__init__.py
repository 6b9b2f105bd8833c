"""From parsed options to calls and printed results: what stands behind the command lines."""
