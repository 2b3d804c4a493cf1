-- order: all
SELECT sum(lo_extendedprice * lo_discount) AS revenue
FROM lineorder, date
WHERE lo_orderdate = d_datekey
  AND d_yearmonthnum = {{1992..1997:1994}}{{01|02|03|04|05|06|07|08|09|10|11|12:01}}
  AND lo_discount BETWEEN {{1..8:4}} AND {{1..8+2:6}}
  AND lo_quantity BETWEEN {{1..41:26}} AND {{1..41+9:35}}
