/** What AWS's S3 client sends in addition to the body of a request: checksums, and headers that define what the request does. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { shared } from '../world/world.ts';
import { CLIENTS, madeByLine } from './clients.ts';
import { lineOf, load, withoutLab } from './installed.ts';
import { givenLab } from './lab-world.ts';

type S3 = {
  send(command: unknown): Promise<Record<string, unknown>>;
  middlewareStack: { add(middleware: unknown, options: unknown): void };
};

const NEW = { Bucket: 'bucket', Key: 'new.txt' };

describe.skipIf(withoutLab)(`the S3 client${withoutLab ? ` (skipped: ${withoutLab})` : ''}`, () => {
  const { world, organisation, agent: agentOf, approve } = givenLab();
  const s3 = CLIENTS.find(({ platform }) => platform === 's3')!;
  const agent = shared(() => agentOf('s3', { without: 's3:buckets.write', heldScope: 's3:buckets.delete' }));
  const client = () => madeByLine(s3, agent.token(), world.running.baseUrl, {}) as S3;
  const command = (name: string, input: object) => new (load('@aws-sdk/client-s3')[name])(input);

  test.each([undefined, 'CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'])(
    'sends a stream in chunks with the trailing checksum %s, and the platform receives the plain bytes',
    async (ChecksumAlgorithm) => {
      let sent: Record<string, string> = {};
      const watching = client();
      const watch =
        (next: (given: unknown) => unknown) => (given: { request: { headers: Record<string, string> } }) => {
          sent = given.request.headers;
          return next(given);
        };
      watching.middlewareStack.add(watch, { step: 'finalizeRequest', priority: 'low' });
      for (const size of [2_000, 900_000]) {
        const text = 'x'.repeat(size);
        const Body = Readable.from([Buffer.from(text.slice(0, 1_000)), Buffer.from(text.slice(1_000))]);
        await watching.send(
          command('PutObjectCommand', {
            ...NEW,
            Body,
            ContentLength: size,
            ContentType: 'text/plain',
            ChecksumAlgorithm,
          }),
        );
        expect(sent).toMatchObject({
          'content-encoding': 'aws-chunked',
          'x-amz-trailer': `x-amz-checksum-${(ChecksumAlgorithm ?? 'CRC32').toLowerCase()}`,
        });
        const { headers, body } = world.upstream.seen.at(-1)!;
        expect([body === text, headers['content-encoding'], headers['content-length']]).toEqual([
          true,
          undefined,
          String(size),
        ]);
      }
    },
  );

  test('stores compressed JSON unchanged, in one piece and in chunks', async () => {
    // The platform of these tests reads a body as text, so this text stands for compressed bytes.
    const packed = Buffer.from('what gzip would make of {"_method":"DELETE"}');
    for (const Body of [packed, Readable.from([packed])]) {
      const object = { ...NEW, Body, ContentType: 'application/json', ContentEncoding: 'gzip' };
      await client().send(command('PutObjectCommand', { ...object, ContentLength: packed.length }));
      const { headers, method } = world.upstream.seen.at(-1)!;
      expect([method, headers['content-type'], headers['content-encoding'], headers['content-length']]).toEqual([
        'PUT',
        'application/json',
        'gzip',
        String(packed.length),
      ]);
    }
  });

  test('describes an object by headers, which are signed and sent on', async () => {
    const input = { ...NEW, Body: 'abc', Metadata: { author: 'ann' }, StorageClass: 'STANDARD_IA', IfNoneMatch: '*' };
    await client().send(command('PutObjectCommand', { ...input, ServerSideEncryption: 'AES256' }));
    expect(world.upstream.seen.at(-1)).toMatchObject({
      body: 'abc',
      headers: {
        'x-amz-meta-author': 'ann',
        'x-amz-storage-class': 'STANDARD_IA',
        'x-amz-server-side-encryption': 'AES256',
        'if-none-match': '*',
      },
    });
  });

  test.each([
    ['CopyObjectCommand', { CopySource: '/other/secret.txt' }, 'x-amz-copy-source'],
    ['UploadPartCopyCommand', { CopySource: '/other/a', UploadId: 'u1', PartNumber: 1 }, 'x-amz-copy-source'],
    ['PutObjectCommand', { Body: 'a', ACL: 'public-read' }, 'x-amz-acl'],
    [
      'PutObjectCommand',
      { Body: 'a', GrantRead: 'uri="http://acs.amazonaws.com/groups/global/AllUsers"' },
      'x-amz-grant-read',
    ],
    ['PutObjectCommand', { Body: 'a', Tagging: 'a=b' }, 'x-amz-tagging'],
    ['PutObjectCommand', { Body: 'a', Metadata: { 'snowball-auto-extract': 'true' } }, 'x-amz-meta-snowball'],
    [
      'PutObjectCommand',
      { Body: 'a', SSECustomerAlgorithm: 'AES256', SSECustomerKey: 'k'.repeat(32) },
      'x-amz-server-side',
    ],
    [
      'PutObjectCommand',
      { Body: 'a', ServerSideEncryption: 'aws:kms', SSEKMSKeyId: 'arn:aws:kms:x' },
      'aws-kms-key-id',
    ],
    [
      'PutObjectCommand',
      { Body: 'a', ObjectLockMode: 'COMPLIANCE', ObjectLockRetainUntilDate: new Date() },
      'x-amz-object-lock',
    ],
    ['PutObjectCommand', { Body: 'a', WebsiteRedirectLocation: 'https://evil.example' }, 'x-amz-website-redirect'],
    ['DeleteObjectCommand', { BypassGovernanceRetention: true }, 'x-amz-bypass-governance-retention'],
    ['GetObjectCommand', { RequestPayer: 'requester' }, 'x-amz-request-payer'],
  ])('gets an error for %s with %j, and nothing is sent', async (name, input, header) => {
    const error = (await client()
      .send(command(name, { ...NEW, ...input }))
      .catch((thrown: unknown) => thrown)) as Error;
    expect(error.message).toContain(`agent-broker: invalid_headers`);
    expect(error.message).toContain(header);
    expect(world.upstream.seen).toEqual([]);
  });

  test('sends DeleteObjects with the checksum that S3 requires', async () => {
    const Objects = [{ Key: 'a.txt' }, { Key: 'b.txt' }];
    const { Deleted } = await client().send(command('DeleteObjectsCommand', { Bucket: 'bucket', Delete: { Objects } }));
    expect(Deleted).toEqual(Objects);
    const { headers, body } = world.upstream.seen.at(-1)!;
    expect(headers['content-md5']).toBe(createHash('md5').update(body).digest('base64'));
    expect(String(headers.authorization)).toMatch(/SignedHeaders=[^,]*content-md5/);
  });

  test('uploads an object in parts, and reads it', async () => {
    const { UploadId } = await client().send(command('CreateMultipartUploadCommand', NEW));
    await client().send(command('UploadPartCommand', { ...NEW, UploadId, PartNumber: 1, Body: 'abc' }));
    const MultipartUpload = { Parts: [{ PartNumber: 1, ETag: '"e"' }] };
    const done = await client().send(command('CompleteMultipartUploadCommand', { ...NEW, UploadId, MultipartUpload }));
    expect(done).toMatchObject({ ETag: '"e"' });
    const { Body } = await client().send(command('GetObjectCommand', { Bucket: 'bucket', Key: 'a.txt' }));
    expect(await (Body as { transformToString(): Promise<string> }).transformToString()).toBe('abc');
    for (const { headers } of world.upstream.seen) expect(headers).not.toHaveProperty('content-md5');
  });

  describe('with a static key as its access key id, and its own signature', () => {
    const key = shared(async () => {
      const { body, status, text } = await organisation.ask('POST', `/owner/agents/${agent.agentId}/static-keys`, {
        label: 'S3 client',
        connection: 's3',
      });
      expect(status, text).toBe(200);
      return body as { key: string };
    });
    const signing = (headers: Record<string, string> = {}): S3 => {
      const { S3Client } = load('@aws-sdk/client-s3');
      const line = lineOf('@aws-sdk/client-s3, static key', world.running.baseUrl);
      const made = new Function('S3Client', 'STATIC_KEY', `return ${line}`)(S3Client, key.key) as S3;
      s3.always?.(made, headers);
      return made;
    };
    const refusal = async (client: S3, ...[name, input]: Parameters<typeof command>): Promise<string> => {
      const error = await client.send(command(name, input)).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Error);
      return (error as Error).message;
    };
    /** Checks that the request is signed with the platform's key (the upstream of the lab verifies it), and contains nothing of the client's signature. */
    const expectSigned = () => {
      for (const { rawHeaders, headers } of world.upstream.seen) {
        expect(JSON.stringify(rawHeaders)).not.toContain(key.key);
        expect(headers.authorization).toContain('Credential=AKIACANARY0123456789/');
      }
    };

    test('reads through the broker', async () => {
      const { Contents } = await signing().send(command('ListObjectsV2Command', { Bucket: 'bucket' }));
      expect(Contents).toMatchObject([{ Key: 'a.txt', Size: 3 }]);
      expect(world.upstream.seen).toHaveLength(1);
      expectSigned();
    });

    test('gets the reason when a call is refused', async () => {
      const message = await refusal(signing(), 'CreateBucketCommand', { Bucket: 'other' });
      expect(message).toContain('agent-broker: scope_not_granted');
      expect(world.upstream.seen).toEqual([]);
    });

    test('gets the result of a call that was approved, which is made once', async () => {
      const patient = signing({ 'X-Svc-Wait': '0' });
      const message = await refusal(patient, 'DeleteBucketCommand', { Bucket: 'old' });
      expect(world.upstream.seen).toEqual([]);
      await approve(message);
      await patient.send(command('DeleteBucketCommand', { Bucket: 'old' }));
      expect(world.upstream.seen.map(({ method, target }) => `${method} ${target}`)).toEqual([
        expect.stringMatching(/^DELETE \/s3\/old\/?(\?x-id=\w+)?$/),
      ]);
      expectSigned();
    });

    test.each([2_000, 2_000_000])(
      'uploads a stream of %i bytes, and the platform receives the plain bytes',
      async (size) => {
        const text = 'x'.repeat(size);
        const Body = Readable.from([Buffer.from(text.slice(0, 1_000)), Buffer.from(text.slice(1_000))]);
        await signing().send(command('PutObjectCommand', { ...NEW, Body, ContentLength: size }));
        const { body, headers } = world.upstream.seen.at(-1)!;
        expect([body === text, headers['content-encoding'], headers['content-length']]).toEqual([
          true,
          undefined,
          String(size),
        ]);
        expectSigned();
      },
    );
  });
});
