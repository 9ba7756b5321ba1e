/** A receiver of a pushed audit on loopback: collects the rows, in either format, in the order of arrival. */
import { expect } from 'vitest';
import { type Seen, startUpstream, type Upstream } from './upstream.ts';

/** A received row. */
export type CameRow = { index: number; id: string; reason: string };

export type AuditReceiver = Upstream & {
  /** Rows of all requests that were answered with success; with `all`, of all requests. */
  rows(all?: boolean): CameRow[];
  /** Waits until this number of rows was received. */
  waitFor(count: number, timeoutMs?: number): Promise<CameRow[]>;
  /** The status of answers; initially 204. */
  status: number;
  /** Discards all received rows. */
  forget(): void;
  /** Platform options for an organisation, with this receiver as the platform. */
  platform: { manifest: { base_url: string } };
};

/** Parses a row from a JSON line of an export, or from an OCSF event. */
// biome-ignore lint/suspicious/noExplicitAny: what came is looked at by the tests.
export const rowIn = (sent: any): CameRow =>
  sent.metadata
    ? { index: sent.metadata.sequence, id: sent.metadata.uid, reason: sent.metadata.event_code }
    : { index: sent.index, id: sent.row.id, reason: sent.row.reason };

/** Parses the rows of a body: an array, or JSON lines. */
export function rowsIn(body: string): CameRow[] {
  const sent = body.startsWith('[')
    ? JSON.parse(body)
    : body
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
  return sent.filter((one: { type?: string }) => one.type !== 'test').map(rowIn);
}

/** Starts the receiver. */
export async function startAuditReceiver(): Promise<AuditReceiver> {
  const upstream = await startUpstream();
  const taken = new Set<number>();
  // Cached, because tests read them often, and the broker under test shares this process.
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
    // It is the platform, too, so that a broker needs access to one server only.
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
