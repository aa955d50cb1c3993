"""A process of its own that writes a run, to be killed, locked out or starved by the tests of the store.

`python store_child.py append FOLDER` appends whole tasks for ever and prints each record as soon as it is stored;
`hold FOLDER` locks the run, says so, and waits for end-of-file on its input; `fill FOLDER BYTES` appends until a file
may not grow beyond BYTES, prints
what the last error said, and closes the run.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from evo.errors import StoreError
from evo.records import Message, ModelReply, ModelRequest, Mutate, Outcome, Status
from evo.store import Store
from tests.support import runs


def main(action: str, folder: str, *rest: str) -> None:
    """Do what the first argument says."""
    try:
        store = Store.open(Path(folder))
    except StoreError as error:
        say(f"refused: {error}")
        return
    if action == "hold":
        say("held")
        sys.stdin.read()
        store.close()
    elif action == "append":
        append(store)
    else:
        limit = int(rest[0])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            append(store)
        except StoreError as error:
            say(f"failed: {error}")
        store.close()
        say("closed")


def append(store: Store) -> None:
    """Append tasks, each with a reply, a candidate and an evaluation, and acknowledge each record."""
    number = len(store.tasks())
    while True:
        store.add_task(Mutate(number, "rewrite", 0, (0,)))
        say(f"task {number}")
        reply = ModelReply("ok", "a long reply " * 200, "a model", 100, 50, 10, 0.001)
        store.add_reply(number, 0, ModelRequest((Message("user", "a long prompt " * 200),)), reply)
        say(f"reply {number}")
        candidate = store.next_candidate()
        store.add_candidate(runs.candidate(candidate, number, (0,)))
        say(f"candidate {candidate}")
        outcome = Outcome(number, candidate, Status.OK, 0.5, {"unit": "scalar"})
        store.add_evaluation_and_tell(runs.evaluation(candidate), outcome)
        say(f"evaluation {candidate}")
        say(f"told {number}")
        number += 1


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
