#!/bin/sh
# Folders include only what lies below them, without a circle, and third-party headers stay where they are confined to.
exec python3 tests/tidy/check_layers.py
