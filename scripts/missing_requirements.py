#!/usr/bin/env python3
"""Prints what this Python lacks of what pyproject.toml asks for, one requirement a line.

    scripts/missing_requirements.py [EXTRA...]

Without an extra: the package's own dependencies and what building it needs.
"""

import pathlib
import sys
import tomllib
from importlib import metadata

try:
    from packaging.requirements import Requirement
except ImportError:  # a new environment has pip alone
    from pip._vendor.packaging.requirements import Requirement


def wanted(project, build, extras):
    """All requirements as texts; an extra that names the project itself stands for its extras."""
    pending = [*build, *project["dependencies"]]
    for extra in extras:
        pending += project["optional-dependencies"][extra]
    while pending:
        text = pending.pop(0)
        requirement = Requirement(text)
        if requirement.name == project["name"]:
            for extra in sorted(requirement.extras):
                pending += project["optional-dependencies"][extra]
        elif requirement.marker is None or requirement.marker.evaluate():
            yield text, requirement


def lacks(requirement):
    """Whether this Python has not what is required, or not what its extras ask for."""
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return True
    if not requirement.specifier.contains(version, prereleases=True):
        return True
    needs = [Requirement(text) for text in metadata.requires(requirement.name) or ()]
    return any(
        need.marker is not None
        and need.marker.evaluate({"extra": extra})
        and not need.marker.evaluate({"extra": ""})
        and lacks(need)
        for extra in requirement.extras
        for need in needs
    )


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    build = settings["build-system"]["requires"]
    for text, requirement in wanted(settings["project"], build, sys.argv[1:]):
        if lacks(requirement):
            print(text)


if __name__ == "__main__":
    main()
