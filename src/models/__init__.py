"""Classifiers, one family per file; a file dropped here is found by itself."""
