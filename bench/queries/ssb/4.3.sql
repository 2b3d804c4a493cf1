-- order: all
SELECT d_year, s_city, p_brand1, sum(lo_revenue - lo_supplycost) AS profit
FROM date, customer, supplier, part, lineorder
WHERE lo_custkey = c_custkey
  AND lo_suppkey = s_suppkey
  AND lo_partkey = p_partkey
  AND lo_orderdate = d_datekey
  AND c_region = '{{region:AMERICA}}'
  AND s_nation = '{{nation:UNITED STATES}}'
  AND (d_year = {{1992..1997:1997}} OR d_year = {{1992..1997+1:1998}})
  AND p_category = 'MFGR#{{1..5#1:1}}{{1..5#2:4}}'
GROUP BY d_year, s_city, p_brand1
ORDER BY d_year, s_city, p_brand1
