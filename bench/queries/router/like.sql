-- name: like_prefix
SELECT count(*) FROM t WHERE s LIKE 'name0000001%';

-- name: glob_prefix
SELECT count(*), sum(x) FROM t WHERE s GLOB 'name0000001*';

-- name: glob_prefix_all
SELECT count(*), sum(x) FROM t WHERE s GLOB 'name*';

-- name: glob_none
SELECT count(*) FROM t WHERE s GLOB 'zzz*';

-- name: like_middle
SELECT count(*) FROM t WHERE note LIKE '%about 17%';

-- name: like_param
-- bind: 'name0000001*'
SELECT count(*) FROM t WHERE s GLOB ?;

-- name: like_end
SELECT count(*) FROM t WHERE s LIKE '%7';

-- name: like_limit
SELECT id, s FROM t WHERE s LIKE '%7' LIMIT 5;

-- name: substr_equal
SELECT count(*) FROM t WHERE substr(s, 5, 6) = '000000';

-- name: prefix_range
SELECT count(*) FROM t WHERE s >= 'name0000002' AND s < 'name0000003';
