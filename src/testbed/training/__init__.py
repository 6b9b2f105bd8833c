"""Training of the built-in networks: a recipe, batches, steps, which epoch is kept, and a card of how it was made."""
