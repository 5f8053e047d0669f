"""Wiring: the one place where emulator, handler and storage meet."""
