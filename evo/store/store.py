"""What a run has stored: append records, read them back, replay them. Nothing is decided here.

Every method that stores is one transaction, on the disk when it returns, so a killed run has lost nothing that it
was told is stored. One writer, any number of readers beside it; `evo.store.database` sees to that.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from evo.config import Budget, Config
from evo.errors import StoreError
from evo.records import (
    Candidate,
    Comparison,
    Device,
    Evaluation,
    Inherited,
    ModelFacts,
    ModelReply,
    ModelRequest,
    Outcome,
    Task,
    ToolResult,
    Turn,
    Workload,
    from_json,
    to_json,
)
from evo.store import rows
from evo.store.database import FILE, Database
from evo.store.rows import Call, Event, Meta, OpenTask, Row, Sent, Spent
from evo.store.schema import ANCESTORS, ELAPSED, OPEN_TASKS, SPENT


class Replayable(Protocol):
    """The part of `evo.search.Search` that `Store.replay` needs."""

    version: int

    def start(self, outcome: Outcome) -> None:
        """Begin with the initial kernel's outcome."""
        ...

    def ask(self) -> Task | None:
        """Return the next task."""
        ...

    def tell(self, outcome: Outcome) -> None:
        """Take in how a task ended."""
        ...

    def limit(self, budget: Budget) -> None:
        """Go on under another budget."""
        ...


class Store:
    """One run's database. Make one with `create`, `open`, `amend` (all lock the run) or `read` (locks nothing).

    Every method that stores raises `StoreError` when the disk is full or damaged, or when the record contradicts
    what is stored; nothing of it is stored then. Every method that reads raises it when the database is damaged.

    Attributes:
        folder: the run's folder.
    """

    def __init__(self, folder: Path, database: Database) -> None:
        """Wrap an open database; use `create`, `open`, `amend` or `read`."""
        self.folder = folder
        self._database = database

    # --- opening and closing ----------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        config: Config,
        workload: Workload,
        device: Device,
        initial: Candidate,
        search_version: int,
        versions: Mapping[str, str],
        inherited: tuple[Inherited, ...] = (),
    ) -> Store:
        """Begin a run's database in `folder` and lock it.

        Args:
            folder: exists and holds no database.
            config: resolved: every default filled in.
            workload: frozen into the database.
            device: that the run begins on.
            initial: the initial kernel, candidate 0, whose task is -1.
            search_version: `Search.version` of the search that will ask.
            versions: distribution name -> version.
            inherited: kernels of an earlier run to begin with, best first.

        Raises:
            StoreError: a run is there already, or it cannot be stored; then nothing of it is left.
        """
        if (folder / FILE).exists():
            raise StoreError(f"{folder / FILE}: expected no database, found one; resume it, or use a new folder")
        store = cls(folder, Database.writing(folder))
        meta = Meta(config, workload, device, versions, search_version, created_at=0.0, inherited=inherited)
        try:
            with store._database.transaction():
                store._database.insert("runs", rows.meta_row(meta))
                store._insert_candidate(initial)
                store._insert_budget(config)
        except StoreError:
            store._database.discard()
            raise
        return store

    @classmethod
    def open(cls, folder: Path) -> Store:
        """Open a run's database to go on with it, and lock it.

        Raises:
            StoreError: there is none, it is locked (the message names the holder), damaged, or of a newer version.
        """
        store = cls.amend(folder)
        with store._database.transaction():
            store._database.execute("UPDATE runs SET stopped = NULL")
        return store

    @classmethod
    def amend(cls, folder: Path) -> Store:
        """Open a run's database to add to it while the run itself stands still, and lock it.

        Raises:
            StoreError: there is none, it is locked (the message names the holder), damaged, or of a newer version.
        """
        _expect_database(folder)
        return cls(folder, Database.writing(folder))._begun()

    @staticmethod
    def upgrade(folder: Path) -> None:
        """Bring a run's database up to the present schema, which `read` needs and `open` sees to.

        Raises:
            StoreError: there is none, it is locked (the message names the holder), damaged, or of a newer version.
        """
        _expect_database(folder)
        Database.writing(folder).close()

    @staticmethod
    def copy(folder: Path, into: Path) -> None:
        """Copy a run's database into an empty folder, up to the present schema; the run itself is only read.

        Raises:
            StoreError: there is none, or it is damaged or of a newer version.
        """
        _expect_database(folder)
        Database.copy(folder / FILE, into / FILE)
        Store.upgrade(into)

    @classmethod
    def read(cls, folder: Path) -> Store:
        """Open a run's database for reading alone; works beside a writer, and takes no lock.

        Raises:
            StoreError: there is none, it is damaged, or of another version.
        """
        _expect_database(folder)
        return cls(folder, Database.reading(folder / FILE))._begun()

    def _begun(self) -> Store:
        if not self._database.query("SELECT 1 FROM runs"):
            self.close()
            raise StoreError(f"{self.folder}: the run was killed before it had begun; delete it and start a new one")
        return self

    def close(self) -> None:
        """Close the database and give the lock back."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- storing: each call is one transaction ----------------------------------------------------------------

    def add_task(self, task: Task) -> None:
        """Store a task that the search asked; comes before it is dispatched."""
        with self._database.transaction():
            self._database.insert("tasks", rows.task_row(task))
            self._database.insert("events", {"kind": "ask", "task": task.id})

    def set_models(self, facts: tuple[ModelFacts, ...]) -> None:
        """Store what is known of the models: prompts are made from it, so that a resumed run must not ask anew."""
        with self._database.transaction():
            self._database.execute("UPDATE runs SET models = :models", models=to_json(facts))

    def add_sent(self, sent: Sent) -> None:
        """Store that a request leaves, and what is set aside for it; comes before it leaves."""
        with self._database.transaction():
            self._database.insert("sent", asdict(sent))

    def add_reply(self, task: int, step: int, request: ModelRequest, reply: ModelReply) -> None:
        """Store a model's reply; comes before it is acted on.

        Args:
            task: id of the task.
            step: which call of the task, from 0.
            request: what was asked.
            reply: what came back.
        """
        with self._database.transaction():
            self._database.insert("calls", rows.call_row(task, step, request, reply))

    def add_results(self, task: int, step: int, results: tuple[ToolResult, ...]) -> None:
        """Store what the tools said that a reply called; comes before the model is asked again."""
        with self._database.transaction():
            self._database.insert("tool_results", {"task": task, "step": step, "results": to_json(results)})

    def add_candidate(self, candidate: Candidate) -> None:
        """Store a candidate with its parents; a second one with the same hash is refused (see `find_by_hash`)."""
        with self._database.transaction():
            self._insert_candidate(candidate)

    def add_code(self, candidate: int, digest: str, listing: str) -> None:
        """Store what a compiler made of a candidate; again is no harm.

        Args:
            candidate: its id.
            digest: what it has in common with every kernel that is the same program; "" where that is not known.
            listing: its machine code in words; "" where nobody looked.
        """
        row = {"candidate": candidate, "digest": digest, "listing": listing}
        with self._database.transaction():
            self._database.execute("INSERT OR REPLACE INTO codes VALUES (:candidate, :digest, :listing)", **row)

    def add_evaluation(self, evaluation: Evaluation) -> None:
        """Store a candidate's evaluation with its cases and trials."""
        with self._database.transaction():
            self._insert_evaluation(evaluation)

    def add_comparison(self, task: int, comparison: Comparison) -> None:
        """Store a comparison under its task's id."""
        with self._database.transaction():
            self._database.insert("comparisons", rows.comparison_row(task, comparison))

    def tell(self, outcome: Outcome) -> None:
        """Store what the search is about to be told; the outcome of task -1 is the search's start."""
        with self._database.transaction():
            self._insert_outcome(outcome)

    def add_evaluation_and_tell(self, evaluation: Evaluation, outcome: Outcome) -> None:
        """Store an evaluation and what the search is told of it, both or neither."""
        with self._database.transaction():
            self._insert_evaluation(evaluation)
            self._insert_outcome(outcome)

    def add_comparison_and_tell(self, comparison: Comparison, outcome: Outcome) -> None:
        """Store a comparison and what the search is told of it, both or neither."""
        with self._database.transaction():
            self._database.insert("comparisons", rows.comparison_row(outcome.task, comparison))
            self._insert_outcome(outcome)

    def set_finale(self, finale: Comparison) -> None:
        """Store the champion's comparison with the initial kernel as given, made when the search has ended."""
        with self._database.transaction():
            self._database.execute("UPDATE runs SET finale = :finale", finale=to_json(finale))

    def set_reference(self, evaluation: Evaluation) -> None:
        """Store the verdict on the workload's reference.cu; a resumed run does not ask for it again."""
        with self._database.transaction():
            self._database.execute("UPDATE runs SET reference = :reference", reference=to_json(evaluation))

    def set_reference_finale(self, finale: Comparison) -> None:
        """Store the champion's comparison with reference.cu, made when the search has ended."""
        with self._database.transaction():
            self._database.execute("UPDATE runs SET reference_finale = :finale", finale=to_json(finale))

    def set_baseline_finale(self, finale: Comparison) -> None:
        """Store the champion's comparison with baseline.py, made when the search has ended."""
        with self._database.transaction():
            self._database.execute("UPDATE runs SET baseline_finale = :finale", finale=to_json(finale))

    def set_config(self, config: Config) -> None:
        """Store the config that a resumed run goes on with; only its budget may differ (the history stays valid)."""
        with self._database.transaction():
            self._database.execute("UPDATE runs SET config = :config", config=config.model_dump_json())
            self._insert_budget(config)

    def stop(self, reason: str) -> None:
        """Store why the run stops, in one word; opening it again takes that back."""
        with self._database.transaction():
            self._database.execute("UPDATE runs SET stopped = :reason", reason=reason)

    # --- reading ----------------------------------------------------------------------------------------------

    def meta(self) -> Meta:
        """Return what the run is made of."""
        return rows.to_meta(self._database.query("SELECT * FROM runs")[0])

    def events(self) -> list[Event]:
        """Return the search's history in order."""
        found = self._database.query(
            "SELECT events.*, tasks.record, tasks.kind AS task_kind FROM events "
            "LEFT JOIN tasks ON tasks.id = events.task ORDER BY seq"
        )
        return [rows.to_event(row) for row in found]

    def budgets(self) -> list[tuple[int, Budget]]:
        """Return every budget that the run has had, in order, each with the event (0: none) after which it began."""
        found = self._database.query("SELECT after, budget FROM budgets ORDER BY rowid")
        return [(row["after"], Budget.model_validate_json(row["budget"])) for row in found]

    def tasks(self) -> list[Task]:
        """Return every task in order."""
        found = self._database.query("SELECT record, kind FROM tasks ORDER BY id")
        return [rows.to_task(row["record"], row["kind"]) for row in found]

    def calls(self, task: int | None = None) -> list[Call]:
        """Return the model calls of a task, or of the whole run, in order."""
        condition = "1" if task is None else "task = :task"
        sql = f"SELECT * FROM calls WHERE {condition} ORDER BY task, step"
        found = self._database.query(sql, task=task)
        return [rows.to_call(row) for row in found]

    def turns(self, task: int) -> tuple[Turn, ...]:
        """Return the replies that a task has had, with what tools said, in order: what its operator's step is given."""
        found = self._database.query("SELECT step, results FROM tool_results WHERE task = :task", task=task)
        results = {row["step"]: from_json(tuple[ToolResult, ...], row["results"]) for row in found}
        return tuple(Turn(call.reply, results.get(call.step, ())) for call in self.calls(task))

    def unsure(self) -> list[Sent]:
        """Return the requests that were sent and not answered, in order: in flight, or interrupted."""
        found = self._database.query("SELECT task, step, model, usd, tokens FROM sent WHERE unsure > 0 ORDER BY id")
        return [Sent(**row) for row in found]

    def candidate(self, candidate: int) -> Candidate:
        """Return one candidate.

        Raises:
            StoreError: there is no such candidate.
        """
        found = self._candidates("id = :id", id=candidate)
        if not found:
            last = self.next_candidate() - 1
            raise StoreError(f"{self.folder}: expected a candidate from 0 to {last}, found {candidate}")
        return found[0]

    def candidates(self) -> list[Candidate]:
        """Return every candidate in order, the initial kernel (0) first."""
        return self._candidates()

    def evaluation(self, candidate: int) -> Evaluation | None:
        """Return the evaluation of a candidate, or None while it has none."""
        return self._evaluations("candidate = :id", id=candidate).get(candidate)

    def evaluations(self) -> dict[int, Evaluation]:
        """Return every evaluation by candidate, in order."""
        return self._evaluations()

    def comparisons(self) -> dict[int, Comparison]:
        """Return every comparison by its task's id, in order."""
        found = self._database.query("SELECT * FROM comparisons ORDER BY task")
        return {row["task"]: rows.to_comparison(row) for row in found}

    def find_by_hash(self, digest: str) -> int | None:
        """Return the id of the candidate whose hash this is, or None."""
        found = self._database.query("SELECT id FROM candidates WHERE hash = :hash", hash=digest)
        return found[0]["id"] if found else None

    def code(self, candidate: int) -> tuple[str, str]:
        """Return digest and listing of a candidate's code, as they were stored; two empty texts where none were."""
        found = self._database.query("SELECT digest, listing FROM codes WHERE candidate = :id", id=candidate)
        return (found[0]["digest"], found[0]["listing"]) if found else ("", "")

    def find_by_code(self, digest: str, before: int) -> int | None:
        """Return the first candidate with this digest of its code, of those with an id below `before`, or None."""
        sql = "SELECT min(candidate) AS id FROM codes WHERE digest = :digest AND candidate < :before"
        found: int | None = self._database.query(sql, digest=digest, before=before)[0]["id"]
        return found

    def next_candidate(self) -> int:
        """Return the id that the next candidate gets."""
        found: int = self._database.query("SELECT coalesce(max(id), -1) + 1 AS id FROM candidates")[0]["id"]
        return found

    def ancestors(self, candidate: int) -> dict[int, int]:
        """Return all ancestors as id -> generations back, nearest first, the candidate itself (0) included."""
        return {row["id"]: row["depth"] for row in self._database.query(ANCESTORS, candidate=candidate)}

    def children(self, candidate: int) -> list[int]:
        """Return the ids of the candidates that have this one as a parent, in order."""
        found = self._database.query(
            "SELECT DISTINCT child FROM parents WHERE parent = :id ORDER BY child", id=candidate
        )
        return [row["child"] for row in found]

    def spent(self) -> Spent:
        """Return what all model calls so far have cost."""
        return Spent(**self._database.query(SPENT)[0])

    def elapsed_s(self) -> float:
        """Return for how many seconds the run has been worked on: from each opening to its close or last record."""
        elapsed: float = self._database.query(ELAPSED)[0]["seconds"]
        return elapsed

    def open_tasks(self) -> list[OpenTask]:
        """Return the tasks that were asked and not told, in order, with all that is stored of them."""
        found = self._database.query(OPEN_TASKS)
        comparisons = self.comparisons()
        return [
            OpenTask(
                task=rows.to_task(row["record"], row["kind"]),
                turns=self.turns(row["id"]),
                sent=row["sent"],
                candidate=None if row["candidate"] is None else self.candidate(row["candidate"]),
                evaluation=None if row["candidate"] is None else self.evaluation(row["candidate"]),
                comparison=comparisons.get(row["id"]),
            )
            for row in found
        ]

    def replay(self, search: Replayable) -> None:
        """Fold the stored history into a fresh search, checking that it asks what is stored.

        Every event meets the budget under which it happened: in fixed order that decides when an outcome counts.

        Raises:
            StoreError: the search is of another version, or asks something else.
        """
        meta = self.meta()
        if meta.search_version != search.version:
            raise self._foreign(meta, f"version {meta.search_version}; this one is version {search.version}")
        budgets = deque(self.budgets())
        for event in self.events():
            while budgets and budgets[0][0] < event.seq:
                search.limit(budgets.popleft()[1])
            if event.outcome is None:
                asked = search.ask()
                if asked != event.task:
                    raise self._foreign(meta, f"event {event.seq} holds {event.task}; this one asks {asked}")
            elif event.task is None:
                search.start(event.outcome)
            else:
                search.tell(event.outcome)
        for _, budget in budgets:
            search.limit(budget)

    def check(self) -> tuple[str, ...]:
        """Return what is wrong with the database file; empty when it is sound."""
        try:
            damage = [row["integrity_check"] for row in self._database.query("PRAGMA integrity_check")]
            orphans = self._database.query("PRAGMA foreign_key_check")
        except StoreError as error:
            return (str(error),)
        lacking = (f"a row of {row['table']} lacks its {row['parent']}" for row in orphans)
        return (*(line for line in damage if line != "ok"), *lacking)

    # --- inside -----------------------------------------------------------------------------------------------

    def _insert_candidate(self, candidate: Candidate) -> None:
        self._database.insert("candidates", rows.candidate_row(candidate))
        self._database.insert("parents", *rows.parent_rows(candidate))

    def _insert_evaluation(self, evaluation: Evaluation) -> None:
        self._database.insert("evaluations", rows.evaluation_row(evaluation))
        self._database.insert("case_results", *rows.case_rows(evaluation))
        self._database.insert("trials", *rows.trial_rows(evaluation))

    def _insert_budget(self, config: Config) -> None:
        """Store the budget under which everything happens from now on."""
        self._database.execute(
            "INSERT INTO budgets SELECT coalesce(max(seq), 0), :budget FROM events",
            budget=config.budget.model_dump_json(),
        )

    def _insert_outcome(self, outcome: Outcome) -> None:
        start = outcome.task < 0
        row = {"kind": "start" if start else "tell", "task": None if start else outcome.task}
        self._database.insert("events", row | {"outcome": to_json(outcome)})

    def _candidates(self, condition: str = "1", **parameters: Any) -> list[Candidate]:
        found = self._database.query(f"SELECT * FROM candidates WHERE {condition} ORDER BY id", **parameters)
        parents: dict[int, list[int]] = defaultdict(list)
        for row in self._database.query(
            "SELECT child, parent FROM parents JOIN candidates ON candidates.id = child "
            f"WHERE {condition} ORDER BY child, position",
            **parameters,
        ):
            parents[row["child"]].append(row["parent"])
        return [rows.to_candidate(row, parents[row["id"]]) for row in found]

    def _evaluations(self, condition: str = "1", **parameters: Any) -> dict[int, Evaluation]:
        # Evaluations first: what a running search adds between the queries then lacks nothing, it is only left out.
        sql = f"SELECT * FROM evaluations WHERE {condition} ORDER BY candidate"
        found = {row["candidate"]: row for row in self._database.query(sql, **parameters)}
        cases = self._by_candidate("case_results", condition, parameters)
        trials = self._by_candidate("trials", condition, parameters)
        return {id: rows.to_evaluation(row, cases[id], trials[id]) for id, row in found.items()}

    def _by_candidate(self, table: str, condition: str, parameters: Row) -> defaultdict[int, list[Row]]:
        found: defaultdict[int, list[Row]] = defaultdict(list)
        sql = f"SELECT * FROM {table} WHERE {condition} ORDER BY candidate, position"
        for row in self._database.query(sql, **parameters):
            found[row["candidate"]].append(row)
        return found

    def _foreign(self, meta: Meta, what: str) -> StoreError:
        wrote = meta.versions.get("kernel-evo", "another version")
        return StoreError(
            f"{self.folder}: written by another search version: {what}. Go on with kernel-evo {wrote}, which wrote "
            f"it, or begin a new run with its best kernels: evo run --from {self.folder}"
        )


def _expect_database(folder: Path) -> None:
    if not (folder / FILE).is_file():
        raise StoreError(f"{folder}: expected a run's folder, found no {FILE} in it; runs lie in results/run-NNN")
