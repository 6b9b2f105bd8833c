"""Metrics: pure functions from arrays to numbers with intervals."""
