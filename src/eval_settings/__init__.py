"""Data sets and evaluation settings, one benchmark per file; a file dropped here is found by itself."""
