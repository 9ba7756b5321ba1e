/**
 * An object store on loopback that implements the part of Amazon S3's API which tools for backups and copies use, verifies the signature of each
 * request, and keeps everything in memory. Paths begin with the bucket.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type AwsKey, awsProblem } from '../../signing/aws-verifier.ts';
import { listenOnLoopback } from '../listen.ts';

export type ObjectStore = {
  url: string;
  /** Objects of the single bucket, by key. */
  objects: Map<string, Buffer>;
  /** For each request with a wrong signature, what was wrong. */
  problems: string[];
};

export const BUCKET = 'bucket';
const REGION = 'us-east-1';

export async function startObjectStore(key: AwsKey): Promise<ObjectStore> {
  const objects = new Map<string, Buffer>();
  const changed = new Map<string, Date>();
  const uploads = new Map<string, Map<number, Buffer>>();
  const problems: string[] = [];

  const answer = (request: IncomingMessage, response: ServerResponse, body: Buffer): void => {
    const { method = '', headers } = request;
    const url = new URL(request.url ?? '', 'http://store');
    const [, bucket = '', name = ''] = /^\/([^/]*)\/?(.*)$/s.exec(decodeURIComponent(url.pathname)) ?? [];
    const asked = url.searchParams;
    const xml = (status: number, text: string) => {
      response.writeHead(status, { 'content-type': 'application/xml' });
      response.end(method === 'HEAD' ? undefined : `<?xml version="1.0" encoding="UTF-8"?>${text}`);
    };
    const store = (bytes: Buffer) => {
      objects.set(name, bytes);
      changed.set(name, new Date());
    };
    const refuse = (status: number, code: string) =>
      xml(status, `<Error><Code>${code}</Code><Message>${code}</Message></Error>`);
    const problem = awsProblem({ method, target: request.url ?? '', headers, body }, key, {
      ...{ region: REGION, service: 's3', now: Date.now() },
    });
    if (problem !== undefined) {
      problems.push(problem);
      return void refuse(403, problem);
    }
    if (bucket === '')
      return void xml(
        200,
        `<ListAllMyBucketsResult><Buckets><Bucket><Name>${BUCKET}</Name></Bucket></Buckets></ListAllMyBucketsResult>`,
      );
    if (bucket !== BUCKET) return void refuse(404, 'NoSuchBucket');
    if (name === '') {
      if (method === 'HEAD') return void xml(200, '');
      if (method !== 'GET') return void refuse(501, 'NotImplemented');
      if (asked.has('location')) return void xml(200, '<LocationConstraint/>');
      return void xml(200, listing(asked));
    }
    const upload = asked.get('uploadId');
    if (method === 'POST' && asked.has('uploads')) {
      const id = String(uploads.size + 1);
      uploads.set(id, new Map());
      return void xml(
        200,
        `<InitiateMultipartUploadResult><Bucket>${BUCKET}</Bucket><Key>${escaped(name)}</Key><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
      );
    }
    if (method === 'PUT') {
      if (headers['if-none-match'] === '*' && objects.has(name)) return void refuse(412, 'PreconditionFailed');
      if (upload === null) store(body);
      else uploads.get(upload)?.set(Number(asked.get('partNumber')), body);
      response.writeHead(200, { etag: etagOf(body) });
      return void response.end();
    }
    if (method === 'POST' && upload !== null) {
      const parts = [...(uploads.get(upload) ?? [])].sort(([a], [b]) => a - b).map(([, bytes]) => bytes);
      store(Buffer.concat(parts));
      return void xml(
        200,
        `<CompleteMultipartUploadResult><ETag>"${parts.length}"</ETag></CompleteMultipartUploadResult>`,
      );
    }
    if (method === 'DELETE') {
      objects.delete(name);
      return void response.writeHead(204).end();
    }
    const found = objects.get(name);
    if (found === undefined) return void refuse(404, 'NoSuchKey');
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
    const part = from === undefined ? found : found.subarray(Number(from), to ? Number(to) + 1 : undefined);
    response.writeHead(from === undefined ? 200 : 206, {
      'content-type': 'application/octet-stream',
      'content-length': part.length,
      'last-modified': (changed.get(name) ?? new Date()).toUTCString(),
      etag: etagOf(found),
      ...(from !== undefined && {
        'content-range': `bytes ${from}-${Number(from) + part.length - 1}/${found.length}`,
      }),
    });
    response.end(method === 'HEAD' ? undefined : part);
  };

  function listing(asked: URLSearchParams): string {
    const prefix = asked.get('prefix') ?? '';
    const delimiter = asked.get('delimiter') ?? '';
    const folders = new Set<string>();
    const contents: string[] = [];
    for (const [name, bytes] of [...objects].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (!name.startsWith(prefix)) continue;
      const end = delimiter === '' ? -1 : name.indexOf(delimiter, prefix.length);
      if (end >= 0) folders.add(name.slice(0, end + delimiter.length));
      else
        contents.push(
          `<Contents><Key>${escaped(name)}</Key><LastModified>${changed.get(name)?.toISOString()}</LastModified><ETag>${escaped(etagOf(bytes))}</ETag><Size>${bytes.length}</Size></Contents>`,
        );
    }
    const prefixes = [...folders].map((one) => `<CommonPrefixes><Prefix>${escaped(one)}</Prefix></CommonPrefixes>`);
    return `<ListBucketResult><Name>${BUCKET}</Name><IsTruncated>false</IsTruncated>${contents.join('')}${prefixes.join('')}</ListBucketResult>`;
  }

  const server = createServer((request, response) => {
    buffer(request).then(
      (body) => answer(request, response, body),
      // The client has disconnected.
      () => response.destroy(),
    );
  });
  const port = await listenOnLoopback(server);
  return { url: `http://127.0.0.1:${port}`, objects, problems };
}

const etagOf = (bytes: Buffer): string => `"${createHash('md5').update(bytes).digest('hex')}"`;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
