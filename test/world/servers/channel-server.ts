/** The server of a channel on loopback: collects what it receives. */
import { expect } from 'vitest';
import { startUpstream, type Upstream } from './upstream.ts';

/** A received webhook. */
export type Came = {
  id: string;
  type: string;
  timestamp: string;
  data: Record<string, unknown>;
  body: string;
  headers: Record<string, string>;
};

export type ChannelServer = Upstream & {
  /** All webhooks received so far. */
  came(): Came[];
  /** Waits until this number was received, and returns them. */
  waitFor(count: number, timeoutMs?: number): Promise<Came[]>;
};

/** Starts the server. It answers 204. */
export async function startChannelServer(): Promise<ChannelServer> {
  const upstream = await startUpstream();
  upstream.answer = (_request, response) => response.writeHead(204).end();
  const came = () =>
    upstream.seen.map(({ body, headers }): Came => {
      const { type, timestamp, data } = JSON.parse(body);
      return {
        id: `${headers['webhook-id']}`,
        type,
        timestamp,
        data,
        body,
        headers: headers as Record<string, string>,
      };
    });
  return Object.assign(upstream, {
    came,
    waitFor: async (count: number, timeout = 10_000) => {
      await expect.poll(() => upstream.seen.length, { timeout, interval: 10 }).toBeGreaterThanOrEqual(count);
      return came();
    },
  });
}
