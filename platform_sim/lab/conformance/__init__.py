"""Conformance: what the emulator does, held against what a real runtime was seen to do."""
