/** A small real receiver of a pushed audit on loopback: the rows that it was sent, in either format, in the order in which they came. */
import { expect } from 'vitest';
import { type Seen, startUpstream, type Upstream } from './upstream.ts';

/** A row as it came. */
export type CameRow = { index: number; id: string; reason: string };

export type AuditReceiver = Upstream & {
  /** Of all requests that it answered with success, or of all that came. */
  rows(all?: boolean): CameRow[];
  /** Waits until it has so many rows. */
  waitFor(count: number, timeoutMs?: number): Promise<CameRow[]>;
  /** Answers this status from now on; 204 at first. */
  status: number;
  /** Begins again. */
  forget(): void;
  /** For an organisation whose platform this is. */
  platform: { manifest: { base_url: string } };
};

/** A row in a JSON line of an export, or in an event of OCSF. */
// biome-ignore lint/suspicious/noExplicitAny: what came is looked at by the tests.
export const rowIn = (sent: any): CameRow =>
  sent.metadata
    ? { index: sent.metadata.sequence, id: sent.metadata.uid, reason: sent.metadata.event_code }
    : { index: sent.index, id: sent.row.id, reason: sent.row.reason };

/** The rows of a body: an array, or JSON lines. */
export function rowsIn(body: string): CameRow[] {
  const sent = body.startsWith('[')
    ? JSON.parse(body)
    : body
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
  return sent.filter((one: { type?: string }) => one.type !== 'test').map(rowIn);
}

/** Starts one; close it after the file. */
export async function startAuditReceiver(): Promise<AuditReceiver> {
  const upstream = await startUpstream();
  const taken = new Set<number>();
  // They are asked for often, and the broker under test runs in this process: each is read once.
  const read = new WeakMap<Seen, CameRow[]>();
  const rowsOf = (one: Seen): CameRow[] => {
    const rows = read.get(one) ?? rowsIn(one.body);
    read.set(one, rows);
    return rows;
  };
  const receiver: AuditReceiver = Object.assign(upstream, {
    status: 204,
    forget: () => {
      upstream.seen.length = 0;
      taken.clear();
    },
    platform: { manifest: { base_url: `${upstream.url}/v1` } },
    rows: (all = false) => upstream.seen.flatMap((one, at) => (all || taken.has(at) ? rowsOf(one) : [])),
    waitFor: async (count: number, timeout = 15_000) => {
      await expect.poll(() => receiver.rows().length, { timeout, interval: 20 }).toBeGreaterThanOrEqual(count);
      return receiver.rows();
    },
  });
  upstream.answer = (request, response) => {
    // It is the platform, too, so that a broker has to reach one server only.
    if (request.url?.startsWith('/v1/items')) {
      upstream.seen.pop();
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      return;
    }
    if (receiver.status < 300) taken.add(upstream.seen.length - 1);
    response.writeHead(receiver.status).end();
  };
  return receiver;
}
