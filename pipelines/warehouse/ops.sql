-- The tables of the schema `ops`, and the columns that those of earlier versions lack. Their meaning is in `dictionary.toml`.

CREATE SCHEMA IF NOT EXISTS ops;

CREATE TABLE IF NOT EXISTS ops.runs (
    run_id VARCHAR PRIMARY KEY, command VARCHAR, version VARCHAR, started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ,
    exit_code INTEGER, environment VARCHAR, legacy_host VARCHAR, public_v1_host VARCHAR
);

CREATE TABLE IF NOT EXISTS ops.warehouse (
    legacy_host VARCHAR, public_v1_host VARCHAR, environment VARCHAR, organization VARCHAR, run_id VARCHAR,
    read_at TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS ops.coverage (
    run_id VARCHAR, resource VARCHAR, verdict VARCHAR, sweeps INTEGER, pages BIGINT, rows BIGINT,
    "distinct" BIGINT, duplicates BIGINT, quarantined BIGINT, total_reported BIGINT, ended_by VARCHAR,
    evidence VARCHAR, started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, published BOOLEAN, read_number BIGINT, cut VARCHAR
);

CREATE TABLE IF NOT EXISTS ops.held_lists (
    run_id VARCHAR, resource VARCHAR, known BIGINT, absent BIGINT, reason VARCHAR, examples VARCHAR,
    compared_with VARCHAR
);

CREATE TABLE IF NOT EXISTS ops.quarantine (
    run_id VARCHAR, resource VARCHAR, page INTEGER, position INTEGER, reason VARCHAR, row_hash VARCHAR,
    duplicate_id VARCHAR
);

CREATE TABLE IF NOT EXISTS ops.control_totals (
    run_id VARCHAR, entity VARCHAR, measure VARCHAR, value BIGINT
);

CREATE TABLE IF NOT EXISTS ops.observations (
    what VARCHAR, value VARCHAR, first_run_id VARCHAR, first_seen_at TIMESTAMPTZ, last_run_id VARCHAR,
    last_seen_at TIMESTAMPTZ, PRIMARY KEY (what, value)
);

CREATE TABLE IF NOT EXISTS ops.order_cursor (
    run_id VARCHAR, cursor VARCHAR, page_limit INTEGER, page_rows INTEGER, page_digest VARCHAR, base_url VARCHAR,
    environment VARCHAR, organization VARCHAR, order_key VARCHAR, is_newest_last BOOLEAN
);

CREATE TABLE IF NOT EXISTS ops.order_fields (
    run_id VARCHAR, field VARCHAR, column_name VARCHAR, matched_share DOUBLE, notation VARCHAR,
    recorded_at TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS ops.questions (
    question VARCHAR PRIMARY KEY, assumption VARCHAR, since TIMESTAMPTZ, fits BIGINT, rows BIGINT, about VARCHAR,
    rival VARCHAR, first_run_id VARCHAR, first_seen_at TIMESTAMPTZ, last_run_id VARCHAR, last_seen_at TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS ops.field_kinds (
    resource VARCHAR, path VARCHAR, kind VARCHAR, values_seen BIGINT, previous_kind VARCHAR, run_id VARCHAR,
    decided_at TIMESTAMPTZ, objects BIGINT, arrays BIGINT, PRIMARY KEY (resource, path)
);

CREATE TABLE IF NOT EXISTS ops.column_values (
    run_id VARCHAR, resource VARCHAR, table_name VARCHAR, column_name VARCHAR, rows BIGINT, nulls BIGINT,
    zeros BIGINT, "distinct" BIGINT, minimum VARCHAR, maximum VARCHAR, recorded_at TIMESTAMPTZ,
    jump VARCHAR
);

CREATE TABLE IF NOT EXISTS ops.recent_rows (
    resource VARCHAR, kind VARCHAR, batch BIGINT, id VARCHAR, lost VARCHAR, gained VARCHAR
);

CREATE TABLE IF NOT EXISTS ops.recent_shares (
    resource VARCHAR, measure VARCHAR, kind VARCHAR, batch BIGINT, place VARCHAR, hits BIGINT, rows BIGINT,
    hits_before BIGINT, rows_before BIGINT, run_id VARCHAR,
    recorded_at TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS ops.promotion_uses (
    promotion_id VARCHAR, run_id VARCHAR, use_count BIGINT, read_at TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS ops.finding_counts (
    run_id VARCHAR, entity VARCHAR, rule VARCHAR, severity VARCHAR, findings BIGINT, accepted BIGINT, new BIGINT,
    gone BIGINT, recorded_at TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS ops.rules (
    rule VARCHAR PRIMARY KEY, since VARCHAR, run_id VARCHAR, is_info BOOLEAN
);

CREATE TABLE IF NOT EXISTS ops.past_findings (
    entity VARCHAR, entity_id VARCHAR, rule VARCHAR, severity VARCHAR, detail VARCHAR, first_run_id VARCHAR,
    first_seen_at TIMESTAMPTZ, last_run_id VARCHAR, gone_run_id VARCHAR
);

CREATE TABLE IF NOT EXISTS ops.push_log (
    plan_id VARCHAR, operation_id VARCHAR, kind VARCHAR, method VARCHAR, path VARCHAR, state VARCHAR,
    status INTEGER, attempts INTEGER, updated_at TIMESTAMPTZ
);

ALTER TABLE IF EXISTS reconciled.exceptions ADD COLUMN IF NOT EXISTS subject VARCHAR;
ALTER TABLE ops.runs ADD COLUMN IF NOT EXISTS answers_hash VARCHAR;
ALTER TABLE ops.coverage ADD COLUMN IF NOT EXISTS read_number BIGINT;
ALTER TABLE ops.coverage ADD COLUMN IF NOT EXISTS cut VARCHAR;
-- after the last change of this table: DuckDB 1.5 commits no change of a table after an update in the same transaction
UPDATE ops.coverage SET read_number = rowid + 1 WHERE read_number IS NULL;
ALTER TABLE ops.order_fields ADD COLUMN IF NOT EXISTS notation VARCHAR;
ALTER TABLE ops.order_fields ADD COLUMN IF NOT EXISTS recorded_at TIMESTAMPTZ;

ALTER TABLE ops.field_kinds ADD COLUMN IF NOT EXISTS objects BIGINT;
ALTER TABLE ops.field_kinds ADD COLUMN IF NOT EXISTS arrays BIGINT;
