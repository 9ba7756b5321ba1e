/** Stores batches as objects of an S3-compatible storage. A batch that is sent again has the same key and content. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type SettingsOf, s3Auth } from '../config-file/audit-sinks.ts';
import { signRequest } from '../egress/sign-request.ts';
import { postBatch } from './post-batch.ts';
import type { Batch, Delivered, Delivering, Sink } from './sink.ts';

type S3 = Delivering<SettingsOf<'s3'>>;

const INDEX_DIGITS = 12;
const digits = (index: number): string => String(index).padStart(INDEX_DIGITS, '0');

/**
 * `<prefix>/YYYY/MM/DD/<first>-<last>-<part of an id>.jsonl.gz`, by the day (UTC) on which the first row became final. The id is that of the first
 * row: after a restore of the broker's store other rows have the same indexes.
 */
function keyOf(prefix: string | undefined, { first, end, lines: [line] }: Batch): string {
  const day = new Date(line.at).toISOString().slice(0, 10).replaceAll('-', '/');
  const name = `${digits(first)}-${digits(end - 1)}-${line.id.slice(-8)}.jsonl.gz`;
  return `${prefix === undefined ? '' : `${prefix}/`}${day}/${name}`;
}

function addressOf({ url, bucket, path_style: pathStyle = true }: SettingsOf<'s3'>, key: string): URL {
  const address = new URL(url);
  const base = address.pathname.replace(/\/$/, '');
  if (!pathStyle) address.hostname = `${bucket}.${address.hostname}`;
  address.pathname = pathStyle ? `${base}/${bucket}/${key}` : `${base}/${key}`;
  return address;
}

async function put(delivering: S3, key: string, body: Buffer, type: string): Promise<Delivered> {
  const { settings, secret, now } = delivering;
  if (secret === undefined) return { kind: 'failed', why: 'It has no key to sign with: give it one.' };
  const url = addressOf(settings, key);
  const headers = { 'content-type': type };
  const request = { method: 'PUT', url, headers, payload: { kind: 'bytes' as const, bytes: body } };
  const signed = await signRequest(request, s3Auth(settings), secret, now);
  if (!signed.ok) return { kind: 'failed', why: `The request cannot be signed: ${signed.detail}.` };
  const sent = await postBatch(delivering, { url, method: 'PUT', headers: { ...headers, ...signed.headers }, body });
  return sent.kind === 'taken' ? { kind: 'arrived' } : sent;
}

const zip = promisify(gzip);

export const s3: Sink<SettingsOf<'s3'>> = {
  deliver: async (delivering, batch) => {
    const body = await zip(batch.lines.map(({ text }) => `${text}\n`).join(''));
    return await put(delivering, keyOf(delivering.settings.prefix, batch), body, 'application/gzip');
  },
  test: (delivering) => {
    const { prefix } = delivering.settings;
    const key = `${prefix === undefined ? '' : `${prefix}/`}agent-broker-test.txt`;
    return put(delivering, key, Buffer.from('A test of agent-broker.\n'), 'text/plain');
  },
};
