-- name: join_key_all
SELECT count(*), sum(t.x) FROM t JOIN d ON d.id = t.d;

-- name: join_kind
SELECT sum(t.x) FROM t JOIN d ON d.id = t.d WHERE d.kind = 3;

-- name: join_small_outer
SELECT count(*), sum(t.x) FROM d JOIN t ON t.d = d.id WHERE d.id = 5;

-- name: join_few_outer
SELECT d.name, count(*) FROM d JOIN t ON t.d = d.id WHERE d.id IN (2, 4) GROUP BY d.name;

-- name: join_range
SELECT sum(e.p) FROM t JOIN e ON e.t = t.id WHERE t.id BETWEEN {0.5} AND {0.5+100};

-- name: join_range_10pc
SELECT sum(e.p) FROM t JOIN e ON e.t = t.id WHERE t.id BETWEEN {0.5} AND {0.6};

-- name: join_all
SELECT count(*), sum(e.p) FROM t JOIN e ON e.t = t.id;

-- name: join_three
SELECT d.kind, sum(e.p) FROM e JOIN t ON t.id = e.t JOIN d ON d.id = t.d GROUP BY d.kind;

-- name: join_three_point
SELECT d.name, e.p FROM e JOIN t ON t.id = e.t JOIN d ON d.id = t.d WHERE e.id = 5;

-- name: join_limit
SELECT t.id, e.p FROM t JOIN e ON e.t = t.id WHERE t.id > {0.3} ORDER BY t.id LIMIT 10;

-- name: join_left_point
SELECT t.id, e.q FROM t LEFT JOIN e ON e.t = t.id WHERE t.id = {0.25};

-- name: join_left_few
SELECT count(*), count(e.id) FROM t LEFT JOIN e ON e.t = t.id WHERE t.id < 100;

-- name: join_left_all
SELECT count(*), count(d.name) FROM t LEFT JOIN d ON d.id = t.d;

-- name: join_k
SELECT count(*) FROM t JOIN e ON e.t = t.id WHERE t.k = 3;

-- name: join_group_all
SELECT d.kind, count(*), sum(t.x) FROM t JOIN d ON d.id = t.d GROUP BY d.kind;

-- name: join_self
SELECT count(*) FROM t AS p JOIN t AS q ON q.id = p.id + 1 WHERE p.y = 9;

-- name: join_w
SELECT sum(w.v) FROM d JOIN w ON w.g = d.id WHERE d.id < 5;

-- name: join_param
-- bind: {0.6}
SELECT sum(e.p) FROM t JOIN e ON e.t = t.id WHERE t.id = ?;

-- name: join_text
SELECT count(*) FROM t JOIN d ON d.id = t.d WHERE d.name = 'dim00003';
