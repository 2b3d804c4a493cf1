-- order: none
SELECT d.id FROM Document d, DocumentAuthors da WHERE d.id = da.documentid AND da.documentid = {{1..9999:813}}
