"""The version of Raydex, from the installed package; pyproject.toml declares it."""

from importlib.metadata import PackageNotFoundError, version


def raydex_version() -> str:
    """Return the version of the installed package; "unknown" for a source tree that is not installed."""
    try:
        return version("raydex")
    except PackageNotFoundError:
        return "unknown"
