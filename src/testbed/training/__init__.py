"""Training of the built-in networks: a recipe, batches, the best epoch by validation, and a card of how it was made."""
