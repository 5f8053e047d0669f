"""A front that holds the socket, and worker processes behind it that may be killed at any time."""
