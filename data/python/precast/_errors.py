"""The library's errors as exceptions."""
from __future__ import annotations


class Error(RuntimeError):
    """An error of precast. The message says what was expected and what was found, and where."""


class ConfigError(Error, ValueError):
    """A wrong option or argument. One message can list several wrong options."""


class DataError(Error):
    """A damaged file or sample, or a value that the writer cannot store. Names the file and, if known, the sample."""


class IoError(Error, OSError):
    """A file that cannot be read or written."""

    def __str__(self) -> str:
        return str(self.args[0])


class ResourceError(Error):
    """Threads cannot be started, or an object is used in a process other than the one that created it."""


# The exception for each precast_data_status.
BY_STATUS: dict[int, type[Exception]] = {2: ConfigError, 3: DataError, 5: IoError, 6: ResourceError, 11: MemoryError}
