-- order: none
SELECT a.id
FROM Document d, DocumentAuthors da, Authors a, PubEdition pe, Publication pu
WHERE (d.id = da.documentid AND a.id = da.authorid AND pe.id = d.pubeditionid AND pu.id = pe.pubid)
  AND ((da.documentid = {{1..99999:81372}} AND d.repositoryID = 1)
    OR pu.title = '{{journal#1:The Scientific Monthly}}'
    OR pu.title = '{{journal#2:Scientific American}}'
    OR a.firstname = '{{frequent_name:John}}'
    OR d.title = '{{seldom_title:Rural Conditions in the South}}')
