-- order: none
SELECT * FROM Document d, Authors a WHERE d.title = a.firstname
