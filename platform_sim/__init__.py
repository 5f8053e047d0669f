"""The emulator: a platform's cut, on your machine, on purpose."""
