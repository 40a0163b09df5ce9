-- The findings of a run become `reconciled.exceptions`, compared with those of the run before: each with the run that first
-- had it. What is gone goes to `ops.past_findings`, counts by rule to `ops.finding_counts`. The names in braces are filled in
-- by `finding_history.py`. A finding is the same as before if it is about the same record, or has the same detail but for
-- numbers and for what it proposes to do at its end.
CREATE OR REPLACE TEMP MACRO same_finding(entity, rule, entity_id, detail) AS
    hash(entity, rule, coalesce(entity_id, regexp_replace(
        regexp_replace(detail, '; (set [a-z_0-9.]+|to answer: orderbridge questions .+)$', ''),
        '(^|[^A-Za-z_])[0-9]+', '\1#', 'g')));

INSERT INTO ops.past_findings BY NAME
SELECT entity, entity_id, rule, severity, detail, first_run_id, first_seen_at, last_run_id, {run} AS gone_run_id
FROM reconciled.exceptions, (
    SELECT arg_max(run_id, rowid) AS last_run_id FROM ops.control_totals
    WHERE entity LIKE 'reconciled.%' AND run_id <> {run})
WHERE same_finding(entity, rule, entity_id, detail) NOT IN (
    SELECT same_finding(entity, rule, entity_id, detail) FROM {findings});

-- Known are the findings of the run before, and where a list is back that it could not read, those gone since then.
CREATE OR REPLACE TABLE reconciled.exceptions AS
WITH runs AS (SELECT run_id, rowid AS n FROM ops.runs
), before AS (
    SELECT max(n) AS n FROM runs SEMI JOIN (FROM ops.control_totals WHERE entity LIKE 'reconciled.%') USING (run_id)
), lists AS (
    SELECT resource, max(r.n) FILTER (published AND r.n <= before.n) AS read_in,
        bool_or(published AND coalesce(r.n > before.n, true)) AS is_back
    FROM ops.coverage LEFT JOIN runs r USING (run_id), before GROUP BY resource
), outage AS (
    SELECT min(r.n) AS n FROM ops.coverage JOIN runs r USING (run_id) JOIN lists USING (resource), before
    WHERE is_back AND NOT published AND r.n > read_in AND r.n <= before.n
), known AS (
    SELECT same_finding(entity, rule, entity_id, detail) AS same, min(first_seen_at) AS first_seen_at,
        arg_min(first_run_id, first_seen_at) AS first_run_id
    FROM (
        SELECT entity, rule, entity_id, detail, first_seen_at, first_run_id FROM reconciled.exceptions
        UNION ALL SELECT entity, rule, entity_id, detail, first_seen_at, first_run_id FROM ops.past_findings
        WHERE gone_run_id IN (SELECT run_id FROM runs, outage WHERE runs.n >= outage.n))
    GROUP BY same
), found AS (
    SELECT *, {accepted} AS is_accepted FROM {findings}
)
SELECT f.* REPLACE ({severity} AS severity), if(k.same IS NULL, {run}, k.first_run_id) AS first_run_id,
    if(k.same IS NULL, {at}, k.first_seen_at) AS first_seen_at
FROM found f LEFT JOIN known k ON k.same = same_finding(f.entity, f.rule, f.entity_id, f.detail)
ORDER BY entity, rule, entity_id, detail;

INSERT INTO ops.finding_counts BY NAME
SELECT {run} AS run_id, entity, rule, severity, count_if(NOT is_gone) AS findings, count_if(is_accepted) AS accepted,
    count(*) FILTER (first_run_id = {run}) AS new, count_if(is_gone) AS gone, {at} AS recorded_at
FROM (
    SELECT entity, rule, severity, is_accepted, first_run_id, false AS is_gone FROM reconciled.exceptions
    UNION ALL SELECT entity, rule, severity, false, NULL, true FROM ops.past_findings WHERE gone_run_id = {run})
GROUP BY ALL ORDER BY ALL;
