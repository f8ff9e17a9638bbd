"""The command ``doppler-gym`` of the installed package."""

import os
import sys

from . import _core


def main() -> int:
    """Runs the command line of this process; returns its exit code."""
    return _core.run_command(["doppler-gym", *(os.fsencode(text) for text in sys.argv[1:])])
