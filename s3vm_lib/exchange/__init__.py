"""Files of other programs, `readers`, and models for them, `export`."""
