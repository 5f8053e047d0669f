"""Experiments built from a lifetime, a world and a host."""
