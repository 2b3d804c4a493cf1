-- order: 3 4
SELECT c_city, s_city, d_year, sum(lo_revenue) AS revenue
FROM customer, lineorder, supplier, date
WHERE lo_custkey = c_custkey
  AND lo_suppkey = s_suppkey
  AND lo_orderdate = d_datekey
  AND (c_city = '{{nation.city#1:UNITED KI}}{{0..5#1:1}}'
    OR c_city = '{{nation.city#1:UNITED KI}}{{0..5#1+4:5}}')
  AND (s_city = '{{nation.city#2:UNITED KI}}{{0..5#2:1}}'
    OR s_city = '{{nation.city#2:UNITED KI}}{{0..5#2+4:5}}')
  AND d_year BETWEEN 1992 AND 1997
GROUP BY c_city, s_city, d_year
ORDER BY d_year ASC, revenue DESC
