"""What the folder of a service remembers outside of its event store: which store it is, and until when the service ran.

The store has an id, in an event, and the folder has the same id in ``service.json``. A database that was lost, or an
address that names another one, does not have this id, so it can't be taken for that of a new service.
"""

from errno import ENOENT
from pathlib import Path
from uuid import uuid4

import msgspec

from onepass.events import EventLog, EventStoreError
from onepass.events.sqlite.tail import why_lost
from onepass.files.atomic import write_atomically
from onepass.service.settings import SERVICE

__all__ = ["NOTE", "ServiceNote"]

NOTE = "service.json"
_KIND, _KEY = "store", "id"


class _Content(msgspec.Struct):
    store: str
    address: str
    time: float


class ServiceNote:
    """The note in a folder.

    Parameters
    ----------
    folder : of the service
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NOTE
        self._content: _Content | None = None
        try:
            self._content = msgspec.json.decode(self._path.read_bytes(), type=_Content)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except msgspec.DecodeError as error:
            words = f"{self._path} is damaged ({error}); delete it if the events are those of this service"
            raise ValueError(words) from None

    @property
    def time(self) -> float | None:
        """Until when the service has run; None in a new folder."""
        return None if self._content is None else self._content.time

    def why_missing(self, file: Path) -> str | None:
        """What to do about a file of events that is gone, in words; None if it is there, or never was."""
        if file.exists():
            return None
        is_noted = self._content is not None and Path(self._content.address) == file.absolute()
        return why_lost(str(file), self._path if is_noted else None)

    def check_file(self, file: Path) -> None:
        """Raise if the file of events is gone."""
        words = self.why_missing(file)
        if words is not None:
            raise EventStoreError(ENOENT, words, str(file.absolute()))

    def identify(self, store: EventLog, since: float, *, writes: bool) -> None:
        """Raise if the store does not belong to the folder.

        A new store is given an id, and a folder without a note is given one with the id of its store.
        """
        event = store.find(SERVICE, _KIND, _KEY)
        if self._content is not None:
            if event is None or event.payload["id"] != self._content.store:
                what = "there are " + ("no events of a service" if event is None else "the events of another service")
                raise EventStoreError(
                    ENOENT,
                    f"{what}, and {self._path.parent} belongs to the events that were in {self._content.address}; "
                    f"restore these from a backup, name the right folder or database or, to use what is there now, "
                    f"delete {self._path}",
                    store.address,
                )
            return
        if event is None and writes:
            event = store.append(SERVICE, _KIND, _KEY, {"id": uuid4().hex})
        if event is not None:
            self._content = _Content(event.payload["id"], store.address, since)
            self._write()

    def save_time(self, time: float) -> None:
        """Note that the service has run until now."""
        if self._content is not None:
            self._content.time = time
            self._write()

    def _write(self) -> None:
        assert self._content is not None
        write_atomically(self._path, msgspec.json.encode(self._content))
