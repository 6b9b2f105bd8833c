"""Changes made to images: noise, corruptions, attacks."""
