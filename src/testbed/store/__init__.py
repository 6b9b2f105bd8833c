"""The database of evaluations."""
