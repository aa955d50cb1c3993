"""One SQLite file of a run: opened, locked, migrated, and every error of it explained. It knows no record.

WAL with synchronous=FULL: a transaction is on the disk when it returns. One writer, kept alone by a file lock whose
holder is named in the database; readers take no lock.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlite_utils
from filelock import FileLock, Timeout

from evo.errors import DiskFullError, StoreError
from evo.store.schema import MIGRATIONS

FILE = "evo.db"
LOCK = "evo.lock"
BUSY_TIMEOUT_S = 30.0  # readers block a writer only while a checkpoint resets the log; this is beyond any of those

Row = dict[str, Any]


class Database:
    """An open database; make one with `writing` or `reading`.

    Attributes:
        path: of the file, for messages.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FileLock | None) -> None:
        """Wrap an open connection; a database without a lock is for reading alone."""
        self.path = path
        self._lock = lock
        self._sqlite = sqlite_utils.Database(connection)

    @classmethod
    def writing(cls, folder: Path) -> Database:
        """Lock a folder, open or begin its database, and bring it up to the present schema.

        Raises:
            StoreError: another process holds the lock (the message names it); the file is damaged or newer than
                this version.
        """
        lock = FileLock(folder / LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            holder = _holder(folder / FILE)
            raise StoreError(f"{folder}: in use by {holder}; wait until it ends, or stop it") from None
        except OSError as error:
            raise StoreError(f"{folder}: cannot be locked: {error}; see that you may write there") from error
        with ExitStack() as undo:
            undo.callback(lock.release)
            if not (folder / FILE).exists():
                undo.callback(_remove, folder)  # half a schema is no run
            with _explained(folder / FILE):
                connection = sqlite3.connect(folder / FILE, timeout=BUSY_TIMEOUT_S)
                undo.callback(connection.close)
                database = cls(folder / FILE, connection, lock)
                database._prepare()
            undo.pop_all()
        return database

    def _prepare(self) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            self._sqlite.conn.execute(f"PRAGMA {pragma}")
        self._migrations().apply(self._sqlite)
        with self.transaction():
            self.insert("holders", {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()})

    @classmethod
    def reading(cls, path: Path) -> Database:
        """Open a database for reading, beside a writer or not.

        Raises:
            StoreError: it is damaged, or of another version.
        """
        with _explained(path), ExitStack() as undo:
            connection = _connect_reading(path)
            undo.callback(connection.close)
            database = cls(path, connection, lock=None)
            if database._migrations().pending(database._sqlite):
                raise StoreError(f"{path}: of an older version; resume the run once, which brings it up to date")
            undo.pop_all()
        return database

    @staticmethod
    def copy(path: Path, target: Path) -> None:
        """Copy a database, of whatever version, into a new file, beside a writer or not.

        Raises:
            StoreError: it is damaged, or the copy cannot be written.
        """
        with _explained(path), closing(_connect_reading(path)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)

    def _migrations(self) -> sqlite_utils.Migrations:
        migrations = sqlite_utils.Migrations("evo")
        for name, script in MIGRATIONS:
            migrations(name=name)(lambda database, script=script: database.executescript(script))
        foreign = {done.name for done in migrations.applied(self._sqlite)} - {name for name, _ in MIGRATIONS}
        if foreign:
            raise StoreError(
                f"{self.path}: written by a newer version (it has {', '.join(sorted(foreign))}); "
                "upgrade kernel-evo to go on with it"
            )
        return migrations

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is stored within is stored when the block ends, or nothing is.

        Raises:
            StoreError: the disk is full or damaged, or a row contradicts what is stored.
        """
        if self._lock is None:
            raise StoreError(f"{self.path}: opened for reading; nothing can be stored")
        with _explained(self.path), self._sqlite.atomic():
            yield

    def insert(self, table: str, *rows: Row) -> None:
        """Insert rows with the same keys; within a `transaction`."""
        self._sqlite[table].insert_all(rows)

    def execute(self, sql: str, **parameters: Any) -> None:
        """Run a statement that returns nothing; within a `transaction`."""
        self._sqlite.execute(sql, parameters)

    def query(self, sql: str, **parameters: Any) -> list[Row]:
        """Return the rows of a SELECT or PRAGMA as dictionaries."""
        with _explained(self.path):
            return list(self._sqlite.query(sql, parameters))

    def discard(self) -> None:
        """Close a database in which no run has begun, and remove it."""
        self._sqlite.close()
        _remove(self.path.parent)
        if self._lock is not None:
            self._lock.release()

    def close(self) -> None:
        """Close the file and give the lock back."""
        if self._lock is not None:
            # On a full disk the end goes unrecorded: the last record stands for it, and the lock must still be freed.
            with suppress(StoreError), self.transaction():
                self.execute(
                    "UPDATE holders SET until = :now WHERE id = (SELECT max(id) FROM holders)", now=time.time()
                )
        self._sqlite.close()
        if self._lock is not None:
            self._lock.release()


def _connect_reading(path: Path) -> sqlite3.Connection:
    # Without the right to write beside it SQLite cannot share a WAL database; at rest it need not.
    at_rest = not path.with_name(f"{path.name}-wal").exists() and not os.access(path.parent, os.W_OK)
    uri = f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if at_rest else ''}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S)


def _remove(folder: Path) -> None:
    for name in (FILE, f"{FILE}-wal", f"{FILE}-shm", LOCK):
        (folder / name).unlink(missing_ok=True)


def disk_full(path: Path, found: str) -> DiskFullError:
    """Return the error of a file that could not be written for lack of room; `found` is the system's word for it."""
    free_mb = shutil.disk_usage(path.parent).free // 2**20
    return DiskFullError(f"{path}: {found}; {free_mb} MB are free there. Make room")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise StoreError(f"{path}: the record contradicts what is stored, and was not stored: {error}") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code; the rest says where it happened
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise disk_full(path, f"SQLite says: {error}") from error
        raise StoreError(f"{path}: SQLite says: {error}; {_way_on(path, code)}") from error


def _way_on(path: Path, code: int) -> str:
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"the file is damaged; put a copy back, or save what is readable with: sqlite3 {path.name} .recover"
    return "nothing was stored; see that the folder and the file can be read and written"


def _holder(path: Path) -> str:
    try:
        with closing(Database.reading(path)) as database:
            found = database.query("SELECT * FROM holders ORDER BY id DESC LIMIT 1")
    except StoreError:
        found = []
    if not found:
        return "another process that has just begun"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found[0]["since"]))
    return f"process {found[0]['pid']} on {found[0]['host']} since {since}"
