"""The exceptions of the package: one message that says what is wrong, where, and how to mend it."""


class DopplerError(Exception):
    """The base of everything that the package raises on its own."""


class UsageError(DopplerError, ValueError):
    """An argument, option or name that is not accepted."""


class EpisodeError(UsageError):
    """``step()`` before ``reset()``, or after the end of the episode."""


class IllegalActionError(UsageError):
    """An action that is not legal now (``on_illegal="raise"``); names those that are."""


class InvalidError(DopplerError, ValueError):
    """A value (graph, cluster, assignment, task) that breaks its own rules; lists every fault."""


class ParseError(DopplerError, ValueError):
    """A file or text whose content is refused: ``file:line:column: what; how to mend it``."""


class RunError(DopplerError, OSError):
    """A file that cannot be read or written, or a run that failed although its use was right."""
