-- order: none
SELECT id FROM Authors WHERE fullname = 'Edna F. Campbell' OR firstname = 'Jim'
