"""What the emulator costs: run by `make bench`, never by the tests."""
