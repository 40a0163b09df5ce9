-- The views of the schema `bi`, each after those that it reads: what is listed now, with names, days and sums in place of
-- keys and codes. Portable SQL: the same statements make them over a copy in Postgres, which replaces a view only if its
-- columns keep their order and types, and new ones are the last. `views.py` fills in what is in braces.

CREATE OR REPLACE VIEW bi.as_of AS
SELECT a.as_of, a.today, a.time_zone, (SELECT max(w.environment) FROM ops.warehouse w) AS environment
FROM reconciled.as_of a;

CREATE OR REPLACE VIEW bi.customers AS
SELECT c.customer_id, c.erp_code, c.full_name AS name, c.email_normalized AS email, c.phone_digits AS phone,
    c.created_at, c.price_list_id, c.price_list_name, c.price_list_status, c.document_count,
    c.default_fiscal_name, o.order_count, o.cancelled_count, o.currency,
    CAST(CASE WHEN o.order_count = 0 THEN 0 ELSE o.revenue END AS DECIMAL(38, 2)) AS revenue, o.first_ordered_at,
    o.last_ordered_at, o.is_active_30_days, o.is_active_90_days, o.is_active_365_days,
    coalesce(o.unknown_because, CASE WHEN o.order_count > 0 AND o.revenue IS NULL AND o.revenue_by_currency IS NOT NULL
        THEN 'revenue: several currencies' END) AS unknown_because, o.revenue_by_currency, o.unknown_orders,
    CAST(o.unknown_total AS DECIMAL(38, 2)) AS unknown_total,
    CAST(c.created_at AT TIME ZONE CASE WHEN EXISTS (
        SELECT 1 FROM reconciled.customers x
        WHERE x.created_at <> date_trunc('day', x.created_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
    ) THEN a.time_zone ELSE 'UTC' END AS DATE) AS created_date,
    o.first_ordered_date, o.last_ordered_date
FROM reconciled.customers c CROSS JOIN bi.as_of a
LEFT JOIN reconciled.customer_orders o ON o.customer_id = c.customer_id
WHERE NOT c.is_missing;

CREATE OR REPLACE VIEW bi.orders AS
SELECT o.order_id, o.ordered_at, o.ordered_date, o.customer_id,
    c.full_name AS customer_name, o.customer_status,
    CASE WHEN c.price_list_status = 'default' THEN 'default' ELSE c.price_list_name END AS price_list_name, o.order_status,
    o.is_cancelled, o.currency, CAST(o.total AS DECIMAL(38, 2)) AS total,
    CAST(CASE WHEN o.is_sale THEN o.total WHEN NOT o.is_sale THEN 0 END AS DECIMAL(38, 2)) AS revenue,
    o.unknown_because, o.status_class, o.is_sale, CAST(o.refunded AS DECIMAL(38, 2)) AS refunded,
    CAST(o.tax_in_total AS DECIMAL(38, 2)) AS tax_in_total,
    CAST(o.shipping_in_total AS DECIMAL(38, 2)) AS shipping_in_total,
    CAST(CASE WHEN o.charges_in_total IS NULL THEN NULL WHEN o.is_sale THEN o.total - o.charges_in_total
        WHEN NOT o.is_sale THEN 0 END AS DECIMAL(38, 2)) AS net_revenue
FROM reconciled.orders o LEFT JOIN reconciled.customers c ON c.customer_id = o.customer_id
WHERE NOT o.is_missing;

CREATE OR REPLACE VIEW bi.open_orders AS
SELECT o.order_id, o.ordered_at, o.ordered_date, a.today - o.ordered_date AS age_days, o.order_status, o.customer_id,
    o.customer_name, o.currency, o.total
FROM bi.orders o CROSS JOIN bi.as_of a WHERE o.status_class = 'open';

CREATE OR REPLACE VIEW bi.order_lines AS
SELECT l.order_id, l.line_number, o.ordered_at, o.ordered_date, o.customer_id, o.customer_name, l.product,
    l.quantity, l.unit_price, CAST(l.line_amount AS DECIMAL(38, 2)) AS line_total, o.currency, o.is_cancelled,
    CAST(CASE WHEN o.is_sale THEN l.line_amount WHEN NOT o.is_sale THEN 0 END AS DECIMAL(38, 2)) AS revenue,
    l.product_name, o.status_class, o.is_sale
FROM reconciled.order_lines l JOIN bi.orders o ON o.order_id = l.order_id WHERE l.line_kind = 'product';

CREATE OR REPLACE VIEW bi.top_products AS
SELECT coalesce(product, product_name) AS product, max(product_name) AS product_name, currency,
    nullif(count(DISTINCT CASE WHEN is_sale THEN order_id END), 0) AS orders,
    sum(CASE WHEN is_sale THEN quantity END) AS quantity, sum(revenue) AS revenue,
    max(CASE WHEN is_sale THEN ordered_date END) AS last_ordered_date,
    count(DISTINCT CASE WHEN is_sale IS NULL THEN order_id END) AS unknown_orders,
    count(CASE WHEN is_sale AND revenue IS NULL THEN 1 END) AS unpriced_lines,
    count(CASE WHEN is_sale AND quantity IS NULL THEN 1 END) AS uncounted_lines
FROM bi.order_lines WHERE is_sale IS NULL OR is_sale GROUP BY coalesce(product, product_name), currency;

CREATE OR REPLACE VIEW bi.regular_customers AS
SELECT d.customer_id, max(d.customer_name) AS customer_name, max(d.price_list_name) AS price_list_name,
    count(*) AS order_days,
    CAST(percentile_cont(0.5) WITHIN GROUP (ORDER BY d.gap) AS INTEGER) AS usual_gap_days,
    max(d.gap) AS longest_gap_days, max(d.ordered_date) AS last_ordered_date,
    max(d.today) - max(d.ordered_date) AS days_since_last,
    max(d.today) - max(d.ordered_date) > max(d.gap) AND max(d.today) - max(d.ordered_date)
        > 2 * percentile_cont(0.5) WITHIN GROUP (ORDER BY d.gap) AS has_stopped
FROM (
    SELECT o.*, a.today, o.ordered_date - lag(o.ordered_date) OVER (
        PARTITION BY o.customer_id ORDER BY o.ordered_date) AS gap
    FROM (
        SELECT customer_id, ordered_date, max(customer_name) AS customer_name,
            max(price_list_name) AS price_list_name
        FROM bi.orders WHERE customer_status = 'matched' AND is_sale AND ordered_date IS NOT NULL
            AND customer_id IN (SELECT customer_id FROM bi.customers)
        GROUP BY customer_id, ordered_date
    ) AS o CROSS JOIN bi.as_of a WHERE o.ordered_date <= a.today
) AS d GROUP BY d.customer_id HAVING count(*) >= 4;

CREATE OR REPLACE VIEW bi.revenue_by_price_list AS
SELECT CAST(date_trunc('month', o.ordered_date) AS DATE) AS month, h.price_list_id,
    max(l.name) AS price_list_name, o.currency, nullif(count(o.is_sale), 0) AS orders, sum(o.revenue) AS revenue,
    CAST(sum(CASE WHEN o.ordered_at < h.valid_from OR o.ordered_at >= h.valid_to THEN 1 ELSE 0 END) AS BIGINT)
        AS assumed_orders,
    CASE WHEN count(h.customer_id) = 0 THEN 'no known customer' WHEN h.price_list_id IS NULL THEN 'default'
        ELSE coalesce(max(l.name), 'not listed: ' || h.price_list_id) END AS price_list,
    count(o.is_sale) - count(o.revenue) AS unpriced_orders, count(*) - count(o.is_sale) AS unknown_orders,
    sum(CASE WHEN o.is_sale IS NULL THEN o.total END) AS unknown_total
FROM bi.orders o LEFT JOIN (
    SELECT customer_id, version, price_list_id, valid_from, valid_to,
        lead(valid_from) OVER (PARTITION BY customer_id ORDER BY version) AS next_from
    FROM reconciled.customer_history
) AS h ON h.customer_id = o.customer_id
    AND (h.valid_from <= o.ordered_at OR h.version = 1) AND (h.next_from IS NULL OR o.ordered_at < h.next_from)
LEFT JOIN reconciled.price_lists l ON l.price_list_id = h.price_list_id
WHERE (o.is_sale IS NULL OR o.is_sale) AND o.ordered_date IS NOT NULL
GROUP BY CAST(date_trunc('month', o.ordered_date) AS DATE), h.price_list_id, o.currency, h.customer_id IS NULL;

CREATE OR REPLACE VIEW bi.revenue_by_day AS
SELECT ordered_date, currency,
    CASE WHEN count(is_sale) > 0 THEN count(CASE WHEN is_sale THEN 1 END) END AS orders,
    CASE WHEN count(is_sale) > 0 THEN count(CASE WHEN is_cancelled THEN 1 END) END AS cancelled_orders,
    CASE WHEN count(customer_status) > 0 AND count(is_sale) > 0
        THEN count(DISTINCT CASE WHEN is_sale THEN customer_id END) END AS customers,
    CASE WHEN count(is_sale) > 0 AND count(CASE WHEN is_sale THEN 1 END) = 0 THEN 0
        ELSE sum(CASE WHEN is_sale THEN total END) END AS revenue,
    count(CASE WHEN is_sale AND total IS NULL THEN 1 END) AS unpriced_orders,
    max(unknown_because) AS unknown_because, count(*) - count(is_sale) AS unknown_orders,
    sum(CASE WHEN is_sale IS NULL THEN total END) AS unknown_total, sum(refunded) AS refunded
FROM bi.orders WHERE ordered_date IS NOT NULL GROUP BY ordered_date, currency;

CREATE OR REPLACE VIEW bi.revenue_by_customer AS
SELECT s.customer_id, s.customer, s.currency, nullif(count(s.is_sale), 0) AS orders,
    sum(CASE WHEN s.is_sale THEN s.total END) AS revenue,
    count(CASE WHEN s.is_sale AND s.ordered_date IS NULL THEN 1 END) AS undated_orders,
    sum(CASE WHEN s.is_sale AND s.ordered_date IS NULL THEN s.total END) AS undated_revenue,
    count(*) - count(s.is_sale) AS unknown_orders, sum(CASE WHEN s.is_sale IS NULL THEN s.total END) AS unknown_total,
    count(CASE WHEN s.is_sale AND s.total IS NULL THEN 1 END) AS unpriced_orders
FROM (
    SELECT c.customer_id, o.currency, o.is_sale, o.total, o.ordered_date,
        CASE WHEN c.customer_id IS NOT NULL THEN c.name WHEN o.customer_status IS NULL THEN '(not known)'
            WHEN o.customer_status = 'none' THEN '(no customer)' ELSE '(customers that are not listed)' END AS customer
    FROM bi.orders o LEFT JOIN bi.customers c ON c.customer_id = o.customer_id AND o.customer_status = 'matched'
    WHERE o.is_sale IS NULL OR o.is_sale
) AS s GROUP BY s.customer_id, s.customer, s.currency;

CREATE OR REPLACE VIEW bi.revenue_by_month AS
SELECT s.month, s.currency,
    CASE WHEN count(s.is_sale) > 0 THEN count(CASE WHEN s.is_sale THEN 1 END) END AS orders,
    CASE WHEN count(s.is_sale) > 0 AND count(CASE WHEN s.is_sale THEN 1 END) = 0 THEN 0
        ELSE sum(CASE WHEN s.is_sale THEN s.total END) END AS revenue,
    CAST(avg(CASE WHEN s.is_sale THEN s.total END) AS DECIMAL(38, 2)) AS average_order_value,
    count(DISTINCT CASE WHEN s.is_sale AND s.month = s.first_month THEN s.customer_id END) AS new_customers,
    count(DISTINCT CASE WHEN s.is_sale AND s.month > s.first_month THEN s.customer_id END) AS returning_customers,
    CASE WHEN count(s.is_sale) > 0 AND count(CASE WHEN s.is_sale AND s.month = s.first_month THEN 1 END) = 0 THEN 0
        ELSE sum(CASE WHEN s.is_sale AND s.month = s.first_month THEN s.total END) END AS new_revenue,
    CASE WHEN count(s.is_sale) > 0 AND count(CASE WHEN s.is_sale AND s.month > s.first_month THEN 1 END) = 0 THEN 0
        ELSE sum(CASE WHEN s.is_sale AND s.month > s.first_month THEN s.total END) END AS returning_revenue,
    count(CASE WHEN s.is_sale AND s.first_month IS NULL THEN 1 END) AS orders_without_customer,
    count(CASE WHEN s.is_sale AND s.total IS NULL THEN 1 END) AS unpriced_orders,
    count(*) - count(s.is_sale) AS unknown_orders, sum(CASE WHEN s.is_sale IS NULL THEN s.total END) AS unknown_total,
    CASE WHEN count(s.is_sale) > 0 THEN count(CASE WHEN s.is_cancelled THEN 1 END) END AS cancelled_orders,
    CASE WHEN count(CASE WHEN s.is_sale THEN s.net_revenue END) = count(CASE WHEN s.is_sale THEN s.total END)
        THEN sum(CASE WHEN s.is_sale THEN s.net_revenue END) END AS net_revenue
FROM (
    SELECT o.currency, o.is_sale, o.is_cancelled, o.total, o.net_revenue, o.customer_id,
        CAST(date_trunc('month', o.ordered_date) AS DATE) AS month, f.first_month
    FROM bi.orders o LEFT JOIN (
        SELECT customer_id, CAST(date_trunc('month', min(ordered_date)) AS DATE) AS first_month
        FROM bi.orders WHERE is_sale AND customer_id IS NOT NULL AND customer_status <> 'none' GROUP BY customer_id
    ) AS f ON f.customer_id = o.customer_id
    WHERE o.ordered_date IS NOT NULL
) AS s GROUP BY s.month, s.currency;

CREATE OR REPLACE VIEW bi.retention_by_month AS
WITH active AS (
    SELECT DISTINCT customer_id, CAST(date_trunc('month', ordered_date) AS DATE) AS month
    FROM bi.orders
    WHERE is_sale AND ordered_date IS NOT NULL AND customer_id IS NOT NULL AND customer_status <> 'none'
), dated AS (
    SELECT customer_id, month, min(month) OVER (PARTITION BY customer_id) AS first_month FROM active
), starts AS (
    SELECT first_month, count(DISTINCT customer_id) AS customers_at_start FROM dated GROUP BY first_month
), months AS (
    SELECT DISTINCT month FROM active
)
SELECT s.first_month, CAST(12 * (extract(YEAR FROM m.month) - extract(YEAR FROM s.first_month))
        + extract(MONTH FROM m.month) - extract(MONTH FROM s.first_month) AS BIGINT) AS months_later,
    count(d.customer_id) AS customers, s.customers_at_start,
    round(100.0 * count(d.customer_id) / s.customers_at_start, 1) AS customers_percent
FROM starts s JOIN months m ON m.month >= s.first_month
    LEFT JOIN dated d ON d.first_month = s.first_month AND d.month = m.month
GROUP BY s.first_month, m.month, s.customers_at_start;

CREATE OR REPLACE VIEW bi.products_by_month AS
SELECT CAST(date_trunc('month', ordered_date) AS DATE) AS month, coalesce(product, product_name) AS product,
    max(product_name) AS product_name, currency, count(DISTINCT order_id) AS orders, sum(quantity) AS quantity,
    sum(revenue) AS revenue, count(CASE WHEN revenue IS NULL THEN 1 END) AS unpriced_lines,
    count(CASE WHEN quantity IS NULL THEN 1 END) AS uncounted_lines
FROM bi.order_lines WHERE is_sale AND ordered_date IS NOT NULL
GROUP BY CAST(date_trunc('month', ordered_date) AS DATE), coalesce(product, product_name), currency;

CREATE OR REPLACE VIEW bi.bought_together AS
SELECT a.product, max(a.product_name) AS product_name, b.product AS other_product,
    max(b.product_name) AS other_product_name, count(*) AS orders_together, max(a.orders) AS product_orders,
    round(100.0 * count(*) / max(a.orders), 1) AS together_percent
FROM (
    SELECT order_id, product, max(product_name) AS product_name, count(*) OVER (PARTITION BY product) AS orders
    FROM (SELECT order_id, coalesce(product, product_name) AS product, product_name FROM bi.order_lines WHERE is_sale) AS p
    WHERE product IS NOT NULL GROUP BY order_id, product
) AS a JOIN (
    SELECT order_id, coalesce(product, product_name) AS product, max(product_name) AS product_name
    FROM bi.order_lines WHERE is_sale GROUP BY order_id, coalesce(product, product_name)
) AS b ON b.order_id = a.order_id AND b.product <> a.product
GROUP BY a.product, b.product HAVING count(*) >= 2;

CREATE OR REPLACE VIEW bi.customer_value AS
SELECT f.customer_id, f.customer_name, f.currency, f.orders, f.revenue,
    CAST(f.average_order_value AS DECIMAL(38, 2)) AS average_order_value, f.first_ordered_date, f.last_ordered_date,
    f.days_since_last, 6 - max(f.recency_fifth) OVER (PARTITION BY f.currency, f.days_since_last) AS recency,
    6 - max(f.frequency_fifth) OVER (PARTITION BY f.currency, f.orders) AS frequency,
    6 - max(f.monetary_fifth) OVER (PARTITION BY f.currency, coalesce(f.revenue, 0)) AS monetary,
    rank() OVER (PARTITION BY f.currency ORDER BY coalesce(f.revenue, 0) DESC) AS revenue_rank,
    round(100.0 * f.revenue / nullif(sum(f.revenue) OVER (PARTITION BY f.currency), 0), 2) AS revenue_percent,
    f.unpriced_orders
FROM (
    SELECT v.*, ntile(5) OVER (PARTITION BY v.currency ORDER BY v.days_since_last) AS recency_fifth,
        ntile(5) OVER (PARTITION BY v.currency ORDER BY v.orders DESC) AS frequency_fifth,
        ntile(5) OVER (PARTITION BY v.currency ORDER BY coalesce(v.revenue, 0) DESC) AS monetary_fifth
    FROM (
        SELECT o.customer_id, max(o.customer_name) AS customer_name, o.currency, count(*) AS orders,
            sum(o.total) AS revenue, count(*) - count(o.total) AS unpriced_orders,
            avg(o.total) AS average_order_value, min(o.ordered_date) AS first_ordered_date,
            max(o.ordered_date) AS last_ordered_date, max(a.today) - max(o.ordered_date) AS days_since_last
        FROM bi.orders o CROSS JOIN bi.as_of a
        WHERE o.is_sale AND o.customer_status = 'matched' AND o.ordered_date IS NOT NULL
            AND o.customer_id IN (SELECT customer_id FROM bi.customers)
        GROUP BY o.customer_id, o.currency
    ) AS v
) AS f;

CREATE OR REPLACE VIEW bi.promotions AS
SELECT p.promotion_id, p.name, p.status, p.is_active, p.starts_at, p.expires_at, p.use_count, p.usage_limit,
    p.remaining_uses, CASE WHEN p.usage_limit > 0 THEN round(100.0 * p.use_count / p.usage_limit, 1) END AS used_percent,
    CAST(p.starts_at AT TIME ZONE z.of_starts AS DATE) AS starts_date,
    CAST(p.expires_at AT TIME ZONE z.of_ends AS DATE) AS expires_date
FROM reconciled.promotions p CROSS JOIN (
    SELECT CASE WHEN bool_or(starts_at <> date_trunc('day', starts_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')
            THEN max(a.time_zone) ELSE 'UTC' END AS of_starts,
        CASE WHEN bool_or(expires_at <> date_trunc('day', expires_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')
            THEN max(a.time_zone) ELSE 'UTC' END AS of_ends
    FROM reconciled.promotions CROSS JOIN bi.as_of a
) AS z WHERE NOT p.is_missing;

CREATE OR REPLACE VIEW bi.promotion_uses AS
SELECT u.promotion_id, p.name, u.read_at, CAST(u.read_at AT TIME ZONE a.time_zone AS DATE) AS read_date,
    u.use_count, u.use_count - lag(u.use_count) OVER (
        PARTITION BY u.promotion_id ORDER BY u.read_at) AS uses_since_before
FROM ops.promotion_uses u CROSS JOIN bi.as_of a
LEFT JOIN reconciled.promotions p ON p.promotion_id = u.promotion_id;

CREATE OR REPLACE VIEW bi.price_lists AS
SELECT l.price_list_id, l.name, l.chain_status, l.depth, l.source_price_list_id, l.root_price_list_id,
    r.name AS root_name, l.adjustment_type, l.adjustment_value, l.customer_count
FROM reconciled.price_lists l LEFT JOIN reconciled.price_lists r ON r.price_list_id = l.root_price_list_id
WHERE NOT l.is_missing;

CREATE OR REPLACE VIEW bi.findings AS
SELECT entity, rule, severity, count(*) AS findings,
    CAST(sum(CASE WHEN is_accepted THEN 1 ELSE 0 END) AS BIGINT) AS accepted
FROM reconciled.exceptions GROUP BY entity, rule, severity;

CREATE OR REPLACE VIEW bi.findings_by_run AS
SELECT f.run_id, f.recorded_at, f.entity, f.rule, f.severity, f.findings, f.accepted, f.new, f.gone,
    CAST(f.recorded_at AT TIME ZONE a.time_zone AS DATE) AS recorded_date
FROM ops.finding_counts f CROSS JOIN bi.as_of a;

CREATE OR REPLACE VIEW bi.erp_match AS
SELECT e.status, e.matched_by, e.reason, count(*) AS rows, count(e.line) AS erp_lines,
    count(e.customer_id) AS platform_customers
FROM reconciled.erp_customers e GROUP BY e.status, e.matched_by, e.reason;

CREATE OR REPLACE VIEW bi.lists AS
SELECT l.resource, coalesce(w.verdict, 'never_read') AS verdict, w."distinct" AS rows, w.quarantined,
    w.ended_at AS read_at, w.run_id, (
        SELECT c.ended_at FROM ops.coverage c
        WHERE c.resource = l.resource AND c.verdict = 'tail' AND c.read_number > w.read_number
            AND {is_reconciled}
        ORDER BY c.read_number DESC LIMIT 1
    ) AS tail_read_at, CAST(w.ended_at AT TIME ZONE a.time_zone AS DATE) AS read_date
FROM ({lists}) AS l CROSS JOIN bi.as_of a LEFT JOIN (
    SELECT c.*, row_number() OVER (PARTITION BY c.resource ORDER BY c.read_number DESC) AS nth
    FROM ops.coverage c WHERE c.verdict <> 'tail' AND {is_reconciled}
) AS w ON w.resource = l.resource AND w.nth = 1;

CREATE OR REPLACE VIEW bi.freshness AS
SELECT max(a.as_of) AS as_of, max(a.environment) AS environment,
    CASE WHEN count(c.complete_at) = count(*) THEN min(c.complete_at) END AS oldest_complete_at, {complete_columns}
FROM ({lists}) AS l CROSS JOIN bi.as_of a LEFT JOIN (
    SELECT c.resource, max(c.ended_at) AS complete_at
    FROM ops.coverage c WHERE c.verdict = 'complete' AND {is_reconciled} GROUP BY c.resource
) AS c ON c.resource = l.resource;
