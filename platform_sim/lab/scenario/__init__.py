"""Scenarios: a world written down as data, run under virtual time, and judged."""
