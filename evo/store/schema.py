"""The tables of a run's database, as ordered migrations, each applied once in a transaction.

Only SQL text; who may write and when is `evo.store`'s affair. Never edit a migration that has been released: append
one, and teach `evo.store.rows` the new shape.
"""

from __future__ import annotations

_NOW = "((julianday('now') - 2440587.5) * 86400.0)"  # Unix time in seconds; unixepoch('subsec') needs SQLite 3.42

_FIRST = f"""
CREATE TABLE runs (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    config TEXT NOT NULL,
    workload TEXT NOT NULL,
    device TEXT NOT NULL,
    seed INTEGER NOT NULL,
    versions TEXT NOT NULL,
    search_version INTEGER NOT NULL,
    created_at REAL NOT NULL DEFAULT {_NOW},
    stopped TEXT,
    finale TEXT
) STRICT;
CREATE TABLE holders (
    id INTEGER PRIMARY KEY,
    pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    since REAL NOT NULL DEFAULT {_NOW},
    until REAL
) STRICT;
CREATE TABLE tasks (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('mutate', 'compare')),
    operator TEXT,
    model INTEGER,
    island INTEGER,
    record TEXT NOT NULL
) STRICT;
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    task INTEGER NOT NULL REFERENCES tasks(id),
    step INTEGER NOT NULL,
    request TEXT NOT NULL,
    reply TEXT NOT NULL,
    status TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cost_usd REAL,
    latency_s REAL NOT NULL,
    at REAL NOT NULL DEFAULT {_NOW},
    UNIQUE (task, step)
) STRICT;
CREATE TABLE spent (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    calls INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL NOT NULL DEFAULT 0,
    unpriced INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO spent (id) VALUES (1);
-- The budget is looked at all the time: adding up every call of a long run would make it slower and slower.
CREATE TRIGGER calls_spent AFTER INSERT ON calls BEGIN
    UPDATE spent SET
        calls = calls + 1,
        input_tokens = input_tokens + coalesce(new.input_tokens, 0),
        output_tokens = output_tokens + coalesce(new.output_tokens, 0),
        cost_usd = cost_usd + coalesce(new.cost_usd, 0),
        unpriced = unpriced + (new.cost_usd IS NULL);
END;
CREATE TABLE candidates (
    id INTEGER PRIMARY KEY,
    task INTEGER UNIQUE REFERENCES tasks(id),
    hash TEXT NOT NULL UNIQUE,
    operator TEXT NOT NULL,
    island INTEGER NOT NULL,
    note TEXT NOT NULL,
    source TEXT NOT NULL,
    at REAL NOT NULL DEFAULT {_NOW}
) STRICT;
CREATE TABLE parents (
    child INTEGER NOT NULL REFERENCES candidates(id),
    position INTEGER NOT NULL,
    parent INTEGER NOT NULL REFERENCES candidates(id),
    PRIMARY KEY (child, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX parents_parent ON parents(parent);
CREATE TABLE evaluations (
    candidate INTEGER PRIMARY KEY REFERENCES candidates(id),
    status TEXT NOT NULL,
    stage TEXT NOT NULL,
    message TEXT NOT NULL,
    source TEXT NOT NULL,
    score_us REAL,
    ratio REAL,
    findings TEXT NOT NULL,
    resources TEXT NOT NULL,
    descriptors TEXT NOT NULL,
    device TEXT NOT NULL,
    screen TEXT NOT NULL,
    screen_note TEXT NOT NULL,
    doubts TEXT NOT NULL,
    stage_seconds TEXT NOT NULL,
    at REAL NOT NULL DEFAULT {_NOW}
) STRICT;
CREATE TABLE case_results (
    candidate INTEGER NOT NULL REFERENCES evaluations(candidate),
    position INTEGER NOT NULL,
    case_name TEXT NOT NULL,
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT NOT NULL,
    error REAL,
    median_us REAL,
    low_us REAL,
    high_us REAL,
    noise REAL,
    samples INTEGER,
    doubts TEXT,
    anchor_us REAL,
    config TEXT NOT NULL,
    PRIMARY KEY (candidate, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE trials (
    candidate INTEGER NOT NULL REFERENCES evaluations(candidate),
    position INTEGER NOT NULL,
    case_name TEXT NOT NULL,
    config TEXT NOT NULL,
    status TEXT NOT NULL,
    latency_us REAL,
    message TEXT NOT NULL,
    PRIMARY KEY (candidate, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE comparisons (
    task INTEGER PRIMARY KEY REFERENCES tasks(id),
    challenger INTEGER NOT NULL REFERENCES candidates(id),
    champion INTEGER NOT NULL REFERENCES candidates(id),
    status TEXT NOT NULL,
    ratio REAL,
    low REAL,
    high REAL,
    confidence REAL NOT NULL,
    blocks INTEGER NOT NULL,
    promoted INTEGER NOT NULL CHECK (promoted IN (0, 1)),
    cases TEXT NOT NULL,
    message TEXT NOT NULL,
    at REAL NOT NULL DEFAULT {_NOW}
) STRICT;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('start', 'ask', 'tell')),
    task INTEGER REFERENCES tasks(id),
    outcome TEXT,
    at REAL NOT NULL DEFAULT {_NOW},
    UNIQUE (task, kind),
    CHECK ((kind = 'start') = (task IS NULL) AND (kind = 'ask') = (outcome IS NULL))
) STRICT;
CREATE UNIQUE INDEX events_start ON events(kind) WHERE kind = 'start';
"""

_REFERENCE = """
ALTER TABLE runs ADD COLUMN reference TEXT;
ALTER TABLE runs ADD COLUMN reference_finale TEXT;
"""

_PROFILE = """
ALTER TABLE evaluations ADD COLUMN profile TEXT;
"""

_BASELINE = """
ALTER TABLE runs ADD COLUMN baseline_finale TEXT;
"""

_GPU = """
ALTER TABLE case_results ADD COLUMN conditions TEXT;
ALTER TABLE case_results ADD COLUMN roofline TEXT;
"""

_BUDGETS = """
CREATE TABLE budgets (
    after INTEGER NOT NULL,
    budget TEXT NOT NULL
) STRICT;
INSERT INTO budgets SELECT 0, json_extract(config, '$.budget') FROM runs;
"""

_LEDGER = f"""
ALTER TABLE runs ADD COLUMN models TEXT;
ALTER TABLE calls ADD COLUMN uncertain INTEGER NOT NULL DEFAULT 0;
CREATE TABLE sent (
    id INTEGER PRIMARY KEY,
    task INTEGER NOT NULL REFERENCES tasks(id),
    step INTEGER NOT NULL,
    model INTEGER NOT NULL,
    usd REAL,
    tokens INTEGER NOT NULL,
    unsure INTEGER NOT NULL DEFAULT 1,
    at REAL NOT NULL DEFAULT {_NOW}
) STRICT;
CREATE INDEX sent_step ON sent(task, step);
CREATE INDEX sent_unsure ON sent(unsure) WHERE unsure > 0;
-- A reply settles the last sending of its step; an earlier one was cut off, and its price stays unknown.
CREATE TRIGGER calls_settle AFTER INSERT ON calls BEGIN
    UPDATE sent SET unsure = new.uncertain
    WHERE id = (SELECT max(id) FROM sent WHERE task = new.task AND step = new.step);
END;
CREATE TABLE tool_results (
    task INTEGER NOT NULL,
    step INTEGER NOT NULL,
    results TEXT NOT NULL,
    at REAL NOT NULL DEFAULT {_NOW},
    PRIMARY KEY (task, step),
    FOREIGN KEY (task, step) REFERENCES calls(task, step)
) STRICT;
"""

_CODES = """
CREATE TABLE codes (
    candidate INTEGER PRIMARY KEY REFERENCES candidates(id),
    digest TEXT NOT NULL,
    listing TEXT NOT NULL
) STRICT;
CREATE INDEX codes_digest ON codes(digest);
"""

_INHERITED = """
ALTER TABLE runs ADD COLUMN inherited TEXT;
"""

MIGRATIONS: tuple[tuple[str, str], ...] = (
    ("001_first", _FIRST),
    ("002_reference", _REFERENCE),
    ("003_profile", _PROFILE),
    ("004_baseline", _BASELINE),
    ("005_gpu", _GPU),
    ("006_budgets", _BUDGETS),
    ("007_ledger", _LEDGER),
    ("008_codes", _CODES),
    ("010_inherited", _INHERITED),
)
"""(name, SQL script) in the order of application."""

ANCESTORS = """
WITH RECURSIVE found(id, depth) AS (
    SELECT :candidate, 0
    UNION
    SELECT parents.parent, found.depth + 1 FROM found JOIN parents ON parents.child = found.id
)
SELECT id, min(depth) AS depth FROM found GROUP BY id ORDER BY depth, id
"""

ELAPSED = """
SELECT coalesce(sum(coalesce(until, (
    SELECT max(at) FROM (
        SELECT at FROM events UNION ALL SELECT at FROM calls
        UNION ALL SELECT at FROM candidates UNION ALL SELECT at FROM evaluations
    )
    WHERE at >= since AND at < coalesce((SELECT min(h.since) FROM holders h WHERE h.id > holders.id), 1e300)
), since) - since), 0.0) AS seconds FROM holders
"""

SPENT = """
SELECT calls, input_tokens, output_tokens, cost_usd, unpriced, unsure, unsure_usd, unsure_tokens
FROM spent, (
    SELECT coalesce(sum(unsure), 0) AS unsure, coalesce(sum(unsure * usd), 0.0) AS unsure_usd,
        coalesce(sum(unsure * tokens), 0) AS unsure_tokens
    FROM sent WHERE unsure > 0
)
"""

OPEN_TASKS = """
SELECT tasks.id, record, kind, candidates.id AS candidate, (
    SELECT count(*) FROM sent
    WHERE sent.task = tasks.id AND step = (SELECT count(*) FROM calls WHERE calls.task = tasks.id)
) AS sent
FROM tasks LEFT JOIN candidates ON candidates.task = tasks.id
WHERE NOT EXISTS (SELECT 1 FROM events WHERE events.task = tasks.id AND events.kind = 'tell')
ORDER BY tasks.id
"""
