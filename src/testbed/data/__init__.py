"""Data sets: where they lie, which classes they have, and their images as arrays."""
