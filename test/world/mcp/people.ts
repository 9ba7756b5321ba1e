/** MCP clients that call for people, through every entry point, on a platform with tokens per person. */
import { Client, type ClientCapabilities } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect, onTestFinished, vi } from 'vitest';
import type { TestAgent } from '../agent.ts';
import { Browser } from '../browser/browser.ts';
import { BIN } from '../checkout.ts';
import { authorise, onward, start } from '../people.ts';
import type { PeopleWorld } from '../people-world.ts';
import type { Organisation, World } from '../world.ts';
import { BARE, writeProfile } from './mcp.ts';
import { browserOf, connectClient } from './person.ts';

const SCOPES = ['docs:read', 'docs:write'];

/** Goes through the consent of a person whose identity the issuer asserts: they sign in there first. */
export async function consentVerified(
  { server, issuer }: PeopleWorld,
  consentUrl: string,
  login: string,
): Promise<void> {
  const browser = new Browser();
  const signedIn = await issuer.signIn(browser, login, await start(browser, consentUrl));
  await authorise(server, browser, login, onward(signedIn));
  expect((await browser.post(`${consentUrl}/keep`, {})).status).toBe(200);
}

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Json = any;

export type ConnectOptions = {
  capabilities?: ClientCapabilities;
  /** Arguments of `agent-broker mcp`, and its environment. */
  words?: readonly string[];
  environment?: Record<string, string>;
  /** Redirects the agent of `agent-broker mcp` to another replica. */
  at?: (agent: TestAgent) => TestAgent;
  /** What the person does with a link that the client is asked to open. */
  onLink?: (url: string) => Promise<unknown>;
};

/** Calls a tool as a new agent of the organisation. Returns the structured content, and the complete result in `whole`. */
export type CallTool = (name: string, args: object, options?: object) => Promise<Json>;

type Connect = (world: World, organisation: Organisation, options?: ConnectOptions) => Promise<CallTool>;

let names = 0;

function clientOf(era: 'modern' | 'legacy', { capabilities = {}, onLink }: ConnectOptions): Client {
  const versionNegotiation = { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' } as const;
  const client = new Client({ name: 'test', version: '1' }, { capabilities, versionNegotiation });
  if (onLink)
    client.setRequestHandler('elicitation/create', async ({ params }: Json) => ({
      action: ((await onLink(params.url)) as 'decline' | undefined) ?? 'accept',
    }));
  onTestFinished(() => client.close());
  return client;
}

const callOf =
  (client: Client): CallTool =>
  async (name, args, options = {}) => {
    const whole = (await client.callTool({ name, arguments: { ...args } }, options as never)) as Json;
    return { ...whole.structuredContent, whole };
  };

const remote =
  (era: 'modern' | 'legacy'): Connect =>
  async (world, organisation, options = {}) => {
    const client = clientOf(era, options);
    const decision = { name: `client-${++names}`, grants: [{ platformId: 'docs', scopes: SCOPES }] };
    await connectClient(world, browserOf(world, organisation.owner), { client, decision });
    return callOf(client);
  };

const stdio: Connect = async (_world, organisation, options = {}) => {
  const { id: policy } = (await organisation.ask('GET', '/owner/policies/default')).body;
  const agent = await organisation.agent({ policy, grants: { docs: { scopeList: SCOPES } } });
  const client = clientOf('legacy', options);
  const { words = [], environment = {}, at = (one) => one } = options;
  const args = [BIN, 'mcp', '--profile', writeProfile(at(agent)), ...words];
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args, env: { ...BARE, ...environment }, stderr: 'ignore' }),
  );
  return callOf(client);
};

/** Extracts the link of a consent from a progress message. */
export const consentLinkIn = (message = ''): string | undefined => /https?:\S+\/me\/consent\/\S+/.exec(message)?.[0];

export const STDIO = stdio;
export const STATELESS = remote('modern');
export const HANDSHAKE = remote('legacy');

export const TRANSPORTS: readonly (readonly [string, Connect])[] = [
  ['/mcp, stateless', STATELESS],
  ['/mcp, shaking hands', HANDSHAKE],
  ['agent-broker mcp', STDIO],
];

/** Returns the pending calls, once there are so many and a request waits for each. */
export async function waitingCalls(world: World, organisation: Organisation, many: number): Promise<string[]> {
  return await vi.waitUntil(
    async () => {
      const { approvals } = (await organisation.ask('GET', '/owner/approvals?status=pending')).body;
      const ids: string[] = approvals.map(({ approval_id }: { approval_id: string }) => approval_id);
      const all = ids.length === many && ids.every((id) => world.running.services.changes.waiting(id) > 0);
      return all ? ids : undefined;
    },
    { timeout: 15_000, interval: 20 },
  );
}
