"""Ways to execute the store's requests."""
