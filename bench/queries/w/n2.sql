-- order: none
SELECT * FROM Document WHERE titleid = 11
