-- order: all
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM (
  SELECT substr(c_phone, 1, 2) AS cntrycode, c_acctbal
  FROM customer
  WHERE substr(c_phone, 1, 2) IN (
      '{{10..34#1:13}}', '{{10..34#2:31}}', '{{10..34#3:23}}', '{{10..34#4:29}}',
      '{{10..34#5:30}}', '{{10..34#6:18}}', '{{10..34#7:17}}')
    AND c_acctbal > (
      SELECT avg(c_acctbal)
      FROM customer
      WHERE c_acctbal > 0.00
        AND substr(c_phone, 1, 2) IN (
          '{{10..34#1:13}}', '{{10..34#2:31}}', '{{10..34#3:23}}', '{{10..34#4:29}}',
          '{{10..34#5:30}}', '{{10..34#6:18}}', '{{10..34#7:17}}'))
    AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
GROUP BY cntrycode
ORDER BY cntrycode
