-- One row per gap (sources/gaps.toml) that a response reveals something about: what, value, plan, first and last time. A
-- create confirmed by a lookup has no status, or the status of the response that left it in doubt.
WITH answers AS (
    SELECT plan_id, kind, method, fields, o.state, status, code, remote_id, o.updated_at
    FROM operations o JOIN plans USING (plan) WHERE status IS NOT NULL
), observations AS (
    SELECT iif(method = 'POST', 'created_status', 'no_content_status') what, status || '' value, plan_id, updated_at
    FROM answers WHERE state = 'confirmed' AND status BETWEEN 200 AND 299
    UNION ALL
    SELECT 'created_body', kind || iif(remote_id IS NULL, ': no id in it', ': an id in it'), plan_id, updated_at
    FROM answers WHERE state = 'confirmed' AND status BETWEEN 200 AND 299 AND method = 'POST'
    UNION ALL
    SELECT 'legacy_error_status', kind || ': status ' || status || ', code ' || iif(code = '', 'none', code),
        plan_id, updated_at
    FROM answers WHERE state = 'rejected'
    UNION ALL
    SELECT 'subcategory_required', iif(state = 'confirmed', 'what was sent was enough', 'status ' || status),
        plan_id, updated_at
    FROM answers WHERE kind = 'subcategories' AND state IN ('confirmed', 'rejected')
    UNION ALL
    SELECT name || '_semantics', 'confirmed; whether it was set or added cannot be read back', plan_id, updated_at
    FROM answers JOIN (SELECT 'price' AS name UNION ALL SELECT 'stock')
    WHERE state = 'confirmed' AND ',' || fields || ',' LIKE '%,' || name || ',%'
)
SELECT what, value, plan_id, min(updated_at), max(updated_at) FROM observations GROUP BY 1, 2, 3 ORDER BY 4, 5, 3
