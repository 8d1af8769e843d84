"""A stand-in, not Ray: the module that every process of Ray has."""
