-- order: none
SELECT * FROM Document WHERE titleid = {{7..15:11}}
