-- order: none
SELECT id FROM Document WHERE title = 'Population' OR pagerange = 'pp. xxxviii-xxxix'
