"""Planning and running evaluations."""
