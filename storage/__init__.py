"""The marker store: markers, their transitions, and the transports that keep them."""
