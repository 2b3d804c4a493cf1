-- order: none
SELECT a.id
FROM Document d, DocumentAuthors da, Authors a, PubEdition pe, Publication pu
WHERE (d.id = da.documentid AND a.id = da.authorid AND pe.id = d.pubeditionid AND pu.id = pe.pubid)
  AND ((da.documentid = 81372 AND d.repositoryID = 1)
    OR pu.title = 'The Scientific Monthly'
    OR pu.title = 'Scientific American'
    OR a.firstname = 'John'
    OR d.title = 'Rural Conditions in the South')
