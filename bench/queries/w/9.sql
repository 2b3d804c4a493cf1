-- order: none
SELECT a.id
FROM Document d, DocumentAuthors da, Authors a, PubEdition pe, Publication pu
WHERE (d.id = da.documentid AND a.id = da.authorid AND pe.id = d.pubeditionid AND pu.id = pe.pubid)
  AND ((da.documentid = {{1..99999:81372}} AND d.repositoryID = {{1..5:1}})
    OR pu.id < 2
    OR pu.publisherid < 2
    OR a.id < 2
    OR d.pubeditionID < 2)
