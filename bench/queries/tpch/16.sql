-- order: all
SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt
FROM partsupp, part
WHERE p_partkey = ps_partkey
  AND p_brand <> 'Brand#{{1..5#1:4}}{{1..5#2:5}}'
  AND p_type NOT LIKE '{{size:MEDIUM}} {{finish:POLISHED}}%'
  AND p_size IN ({{1..50#1:49}}, {{1..50#2:14}}, {{1..50#3:23}}, {{1..50#4:45}},
    {{1..50#5:19}}, {{1..50#6:3}}, {{1..50#7:36}}, {{1..50#8:9}})
  AND ps_suppkey NOT IN (
    SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size
ORDER BY supplier_cnt DESC, p_brand, p_type, p_size
