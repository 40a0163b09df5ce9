-- The tables of a ledger.

CREATE TABLE ledger (
    salt BLOB NOT NULL, wall REAL, boot_id TEXT, uptime REAL, time REAL, commits INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE plans (
    plan INTEGER PRIMARY KEY, plan_id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, host TEXT NOT NULL,
    environment TEXT NOT NULL, folder TEXT NOT NULL, operations_sha256 TEXT NOT NULL, opened_at REAL NOT NULL,
    recorded_in INTEGER NOT NULL DEFAULT 0, pushes INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE operations (
    plan INTEGER NOT NULL REFERENCES plans, id INTEGER NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL,
    fields TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, status INTEGER,
    code TEXT NOT NULL DEFAULT '', request_id TEXT NOT NULL DEFAULT '', words TEXT NOT NULL DEFAULT '',
    remote_id TEXT, sent_at REAL, doubt_at REAL, updated_at REAL NOT NULL, state_at REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (plan, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS doubtful ON operations (plan, id) WHERE doubt_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS unended ON operations (plan, state, id)
    WHERE state IN ('in_flight', 'in_doubt', 'conflict');

CREATE TABLE claims (
    host TEXT NOT NULL, key BLOB NOT NULL, plan INTEGER NOT NULL, id INTEGER NOT NULL,
    PRIMARY KEY (host, key, plan, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS claims_of_plan ON claims (plan, id);

CREATE TABLE confirmed (
    host TEXT NOT NULL, path TEXT NOT NULL, field TEXT NOT NULL,
    value TEXT NOT NULL, confirmed_at REAL NOT NULL, plan_id TEXT NOT NULL,
    confirmed_in INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (host, path, field)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS hosts (
    host TEXT NOT NULL, other TEXT NOT NULL, is_same INTEGER NOT NULL, PRIMARY KEY (host, other)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS keys (
    host TEXT NOT NULL, digest BLOB NOT NULL, used_at REAL NOT NULL, PRIMARY KEY (host, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS settling (
    plan INTEGER PRIMARY KEY REFERENCES plans, settle_s REAL NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS home (
    path TEXT NOT NULL, file TEXT NOT NULL
) STRICT;
