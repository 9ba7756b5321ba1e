/**
 * S3, and object stores with a compatible API (MinIO, R2, Ceph), with the bucket as the first segment of the path. Operations: Amazon S3 API reference. Each
 * region and each store has its own address, so `base_url` is a placeholder that the schema refuses until it is overridden. The query determines the
 * operation as much as the path does: `PUT /bucket/key?acl` sets who may read the object, and falls under `s3:permissions.write` only (`content_scopes`). The
 * AWS SDKs send a slash after the bucket. Of the headers `x-…`, agents may send those that describe the object, request less, or make the call conditional; a
 * call with any other (copies, access, tags, locks, encryption keys, payer, those of MinIO) is refused. Deliberately in no scope: HEAD, which is not a method
 * of calls, forms that browsers send, S3 Control, and APIs of stores beside buckets (`STORES_OWN`).
 */
import type { ManifestInput } from '../manifest.ts';

/** Query parameters of an operation, and the scope that it needs in place of that of its path; null: none. */
const queried = (scope: string | null, names: string) =>
  names.split(' ').map((name) => ({ pointer: `/${name}`, in: 'query' as const, scope }));

const PERMISSIONS = 'abac acl policy policyStatus publicAccessBlock ownershipControls';
const CONFIGURATION =
  'accelerate analytics cors encryption intelligent-tiering inventory lifecycle logging metadataAnnotationTable metadataConfiguration metadataInventoryTable metadataJournalTable metadataTable metrics notification object-lock replication requestPayment versioning website';

/**
 * First segments under which stores have their own APIs, which may accept the same key: users and their keys, policies, stopping a server. MinIO
 * (`minioReservedBucket`), RustFS, Ceph (Admin Ops API, `rgw_admin_entry`), CloudServer (`internalHandlers`).
 */
const STORES_OWN = ['minio', 'rustfs', 'admin', '_'];
const storesOwn = STORES_OWN.flatMap((segment) =>
  ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [`${method} /${segment}/**`, [{ scope: null }]]),
);

export const s3 = {
  kind: 'rest',
  name: 'S3',
  docs: 'https://docs.aws.amazon.com/AmazonS3/latest/API',
  base_url: 'https://your-storage.invalid',
  auth: { type: 'aws_sigv4', region: 'us-east-1', service: 's3', unsigned_payload: true },
  client_headers: [
    'x-amz-meta-*',
    'x-amz-storage-class',
    'x-amz-server-side-encryption',
    'x-amz-expected-bucket-owner',
    'x-amz-mp-object-size',
    'x-amz-if-match-*',
    'x-amz-object-attributes',
    'x-amz-optional-object-attributes',
    'x-amz-max-parts',
    'x-amz-part-number-marker',
  ],
  // MinIO and RustFS unpack an archive into many objects, below a prefix that the path does not name; R2 creates a bucket.
  refused_headers: [
    'x-amz-meta-snowball-*',
    'x-amz-meta-minio-*',
    'x-amz-meta-rustfs-*',
    'cf-create-bucket-if-missing',
  ],
  // A second signature ("Authenticating Requests: Using Query Parameters", "Signing and authenticating REST requests"), which MinIO prefers over the one in
  // the header; and parameters with the names of headers, which MinIO also reads from the query (`extractMetadataFromReq`).
  refused_parameters: ['x-amz-*', 'x-minio-*', 'AWSAccessKeyId'].map((name) => ({ name, in: 'query' as const })),
  error_body:
    '<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code><Message>{detail}</Message></Error>',
  // Settings, and the list of an upload's parts, are XML.
  bodies: {
    'PUT /*': ['json', 'text'],
    'PUT /*/': ['json', 'text'],
    'PUT /*/**': ['json', 'text', 'bytes'],
    'POST /*/**': ['json', 'text'],
  },
  scopes: {
    's3:buckets.read': ['GET /'],
    's3:buckets.write': ['PUT /*', 'PUT /*/'],
    's3:buckets.delete': ['DELETE /*', 'DELETE /*/'],
    // Names and sizes of the objects in a bucket, and uploads in progress.
    's3:listing.read': ['GET /*', 'GET /*/'],
    's3:objects.read': ['GET /*/**'],
    's3:objects.write': ['PUT /*/**'],
    's3:objects.delete': ['DELETE /*/**'],
    // Without a version, an object of a versioned bucket is hidden; with one, that version is deleted permanently. The POST deletes many objects, and names
    // their versions in its XML.
    's3:versions.delete': ['POST /*', 'POST /*/'],
    // Creates a copy of an archived object for some days, which costs money.
    's3:objects.restore': [],
    // Begins or completes a multipart upload; writing its parts, and aborting it, fall under the scopes of objects.
    's3:uploads.write': ['POST /*/**'],
    's3:tags.read': [],
    's3:tags.write': [],
    // Who may read and write the contents of a bucket.
    's3:permissions.read': [],
    's3:permissions.write': [],
    's3:config.read': [],
    's3:config.write': [],
    's3:locks.write': [],
  },
  content_scopes: {
    ...Object.fromEntries(storesOwn),
    'GET /*': [
      // Returns a credential (CreateSession of directory buckets).
      ...queried(null, 'session'),
      ...queried('s3:permissions.read', PERMISSIONS),
      ...queried('s3:config.read', CONFIGURATION),
      ...queried('s3:tags.read', 'tagging'),
    ],
    'PUT /*': [
      ...queried('s3:permissions.write', PERMISSIONS),
      ...queried('s3:config.write', CONFIGURATION),
      ...queried('s3:tags.write', 'tagging'),
    ],
    'DELETE /*': [
      ...queried('s3:permissions.write', PERMISSIONS),
      ...queried('s3:config.write', CONFIGURATION),
      ...queried('s3:tags.write', 'tagging'),
    ],
    'POST /*': queried('s3:config.write', 'metadataConfiguration metadataTable'),
    // A SQL query reads the object.
    'POST /*/**': [...queried('s3:objects.read', 'select'), ...queried('s3:objects.restore', 'restore')],
    'GET /*/**': [...queried('s3:permissions.read', 'acl'), ...queried('s3:tags.read', 'tagging')],
    'PUT /*/**': [
      ...queried('s3:permissions.write', 'acl'),
      ...queried('s3:tags.write', 'tagging'),
      ...queried('s3:locks.write', 'retention legal-hold'),
      // Sets the encryption key of an object.
      ...queried('s3:config.write', 'encryption'),
    ],
    'DELETE /*/**': [...queried('s3:tags.write', 'tagging'), ...queried('s3:versions.delete', 'versionId')],
  },
  presets: {
    read: ['s3:buckets.read', 's3:listing.read', 's3:objects.read', 's3:tags.read'],
    write: [
      's3:buckets.read',
      's3:listing.read',
      's3:objects.read',
      's3:tags.read',
      's3:objects.write',
      's3:uploads.write',
      's3:tags.write',
    ],
    everything: ['*'],
  },
} satisfies ManifestInput;
