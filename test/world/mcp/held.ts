/** Held calls of remote MCP clients, from the person's and the platform's side. */
import { fetch } from 'undici';
import { expect, vi } from 'vitest';
import { expectStatus, jsonPost } from '../agent.ts';
import type { Organisation, World } from '../world.ts';

const TIMEOUT = { timeout: 15_000, interval: 5 };

export type HeldArguments = { platform: string; scope: string; endpoint: string; data: { title: string } };

export type Desk = {
  /** Returns arguments of a unique call that is held. */
  held(): HeldArguments;
  /** Returns how often the platform got the call. */
  sentFor(args: HeldArguments): number;
  /** Returns the pending approvals of the agent with this name. */
  pending(name: string): Promise<string[]>;
  /** Returns the single pending approval of this agent, once it exists and an open request waits for it. */
  waited(name: string): Promise<string>;
  /** Resolves when no request is open for the approval. */
  leftAlone(id: string): Promise<unknown>;
  decide(id: string, verb: 'approve' | 'deny', body?: object): Promise<void>;
  urlOf(id: string): string;
  /** Returns the id at the end of the link that a client was shown. */
  idIn(url: string): string;
};

let titles = 0;

export function deskOf(world: World, organisation: Organisation): Desk {
  const waiting = (id: string) => world.running.services.changes.waiting(id);
  const urlOf = (id: string) => `${world.running.baseUrl}/approve/${id}`;
  const pending = async (name: string): Promise<string[]> => {
    const { approvals } = (await organisation.ask('GET', '/owner/approvals?status=pending')).body;
    return approvals
      .filter(({ agent }: { agent: { name: string } }) => agent.name === name)
      .map(({ approval_id }: { approval_id: string }) => approval_id);
  };
  return {
    held: () => ({
      platform: 'demo',
      scope: 'demo:write',
      endpoint: '/items',
      data: { title: `remote-${++titles}` },
    }),
    sentFor: ({ data }) => world.upstream.seen.filter(({ body }) => body.includes(`"${data.title}"`)).length,
    pending,
    waited: (name) =>
      vi.waitUntil(async () => (await pending(name)).find((id) => waiting(id) > 0), { ...TIMEOUT, interval: 20 }),
    leftAlone: (id) => vi.waitUntil(() => waiting(id) === 0, TIMEOUT),
    decide: async (id, verb, body = {}) => {
      await expectStatus(200, organisation.ask('POST', `/owner/approvals/${id}/${verb}`, body));
    },
    urlOf,
    idIn: (url) => {
      const id = url.split('/').at(-1)!;
      expect(url).toBe(urlOf(id));
      return id;
    },
  };
}

/** Makes a held write and returns its progress: when it begins to wait, and its final answer. `id`: of its JSON-RPC request. */
export function writeWaiting(
  at: string,
  token: string,
  args: Record<string, unknown>,
  more: Record<string, string> = {},
  id = 1,
) {
  const waits = Promise.withResolvers<void>();
  const answer = (async () => {
    const params = { name: 'write_platform', arguments: args, _meta: { progressToken: 1 } };
    const response = await fetch(
      `${at}/mcp`,
      jsonPost(
        { jsonrpc: '2.0', id, method: 'tools/call', params },
        { accept: 'application/json, text/event-stream', authorization: `Bearer ${token}`, ...more },
      ),
    );
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      if (text.includes('notifications/progress')) waits.resolve();
    }
    return text;
  })();
  // Avoids an unhandled rejection when the test failed before.
  answer.catch(waits.reject);
  return { waits: waits.promise, answer };
}
