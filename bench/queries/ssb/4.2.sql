-- order: all
SELECT d_year, s_nation, p_category, sum(lo_revenue - lo_supplycost) AS profit
FROM date, customer, supplier, part, lineorder
WHERE lo_custkey = c_custkey
  AND lo_suppkey = s_suppkey
  AND lo_partkey = p_partkey
  AND lo_orderdate = d_datekey
  AND c_region = '{{region#1:AMERICA}}'
  AND s_region = '{{region#2:AMERICA}}'
  AND (d_year = {{1992..1997:1997}} OR d_year = {{1992..1997+1:1998}})
  AND (p_mfgr = 'MFGR#{{1..4:1}}' OR p_mfgr = 'MFGR#{{1..4+1:2}}')
GROUP BY d_year, s_nation, p_category
ORDER BY d_year, s_nation, p_category
