"""A stand-in, not Ray."""
