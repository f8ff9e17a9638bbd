"""The command ``doppler-gym`` of the installed package."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from . import _core


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line ``doppler-gym`` in this process, with the agents registered in it.

    A file that registers an agent of its own becomes a command by ``sys.exit(dg.main())``. Once a
    process: it takes over SIGINT, SIGTERM, SIGHUP and SIGPIPE.

    Args:
        arguments: what follows the program's name; without it those of this process.

    Returns:
        The exit code: 0, 1 for a run that failed, 2 for bad use.
    """
    given = sys.argv[1:] if arguments is None else arguments
    return _core.run_command(["doppler-gym", *(os.fsencode(text) for text in given)])
