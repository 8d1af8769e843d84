"""What `make test` leaves to `make soak`, which sets LACUNA_SOAK=1: the further kinds of a thing that one test shows already."""
import os
import unittest

SOAK = os.environ.get("LACUNA_SOAK") == "1"
in_soak = unittest.skipUnless(SOAK, "in make soak")
