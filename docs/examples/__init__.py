"""Apps to put under the emulator and the cut sweep."""
