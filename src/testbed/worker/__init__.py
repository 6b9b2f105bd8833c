"""What runs in a worker's process: a unit in, its logits out. It knows no engine and no database."""
