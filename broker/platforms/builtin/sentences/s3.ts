/**
 * Sentences for calls of S3. The query determines the operation of a path (`?acl`), mostly by a parameter without a value: so each sentence says that the
 * call may be that operation.
 */
export const s3Sentences = {
  'PUT /*': 'create the bucket **{1}**, or set what the query names of it',
  'PUT /*/': 'create the bucket **{1}**, or set what the query names of it',
  'DELETE /*': 'delete the bucket **{1}**, or what the query names of it',
  'DELETE /*/': 'delete the bucket **{1}**, or what the query names of it',
  'POST /*': 'delete objects of the bucket **{1}**, or their versions, or set what the query names of it',
  'POST /*/': 'delete objects of the bucket **{1}**, or their versions, or set what the query names of it',
  'PUT /*/**': 'write **{**}** in the bucket **{1}**, or what the query names of it[, part {?partNumber}]',
  'DELETE /*/**':
    'delete **{**}** in the bucket **{1}**, or what the query names of it[, version **{?versionId}**][, upload {?uploadId}]',
  'POST /*/**':
    'begin or complete the upload of **{**}** to the bucket **{1}**, or do what the query names with it[, upload {?uploadId}]',
};
