/** MCP clients that were not written by the SDK's authors: mcp-remote, through which programs that only support stdio connect to /mcp, and the AI SDK. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { send } from '../world/agent.ts';
import { BIN } from '../world/checkout.ts';
import { deskOf } from '../world/mcp/held.ts';
import { BARE, writeProfile } from '../world/mcp/mcp.ts';
import { browserOf, consent } from '../world/mcp/person.ts';
import { OAuthClient } from '../world/oauth-client.ts';
import { newFolder } from '../world/stores.ts';
import { DEMO_RULES, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';
import { load, withoutLab } from './installed.ts';

const READ = { platform: 'demo', scope: 'demo:read', endpoint: '/items/1?full=true' };
const EVERYTHING = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
const TIMEOUT = { timeout: 20_000, interval: 50 };
const REMOTE = join(import.meta.dirname, 'node_modules/mcp-remote/dist/proxy.js');

// biome-ignore lint/suspicious/noExplicitAny: the clients are not installed where this is checked.
type Call = (name: string, args: object) => Promise<any>;

describe.skipIf(withoutLab)(`MCP clients${withoutLab ? ` (skipped: ${withoutLab})` : ''}`, { timeout: 180_000 }, () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  const browser = () => browserOf(world, organisation.owner);

  /** Makes a read, a call with invalid arguments, and a write that is approved while the client waits for it. */
  const useAs = async (name: string, call: Call) => {
    expect((await call('read_platform', READ)).structuredContent.data.target).toBe('/v1/items/1?full=true');
    const wrong = await call('read_platform', { platform: 'demo' });
    expect(wrong.isError).toBe(true);
    expect(wrong.content[0].text).toContain('endpoint: is missing');
    const desk = deskOf(world, organisation);
    const args = desk.held();
    const called = call('write_platform', args);
    const held = await vi.waitUntil(async () => (await desk.pending(name))[0], TIMEOUT);
    await desk.decide(held, 'approve', { note: 'Seen.' });
    expect((await called).structuredContent).toMatchObject({ status: 'answered', approval_id: held, note: 'Seen.' });
    expect(desk.sentFor(args)).toBe(1);
  };

  test('mcp-remote signs in through the consent page, and passes all calls on', async () => {
    const client = new Client({ name: 'stdio alone', version: '1' });
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [REMOTE, `${world.running.baseUrl}/mcp`],
      // BROWSER is a program that does nothing; mcp-remote prints the URL to its standard error.
      env: { ...BARE, HOME: newFolder(), BROWSER: 'true' },
      stderr: 'pipe',
    });
    let said = '';
    let consented: Promise<unknown> | undefined;
    // A retry of the test uses another name.
    const agent = `Remote ${randomUUID().slice(0, 8)}`;
    transport.stderr?.on('data', (text: Buffer) => {
      said += text;
      const [, asked] = /(http\S+\/oauth\/authorize\?\S+)\s/.exec(said) ?? [];
      // mcp-remote starts to listen for the callback after it has printed the URL.
      if (asked === undefined || !said.includes('OAuth callback server running')) return;
      consented ??= consent(browser(), asked, { name: agent, grants: EVERYTHING }).then((back) =>
        send(`${new URL(asked).searchParams.get('redirect_uri')}?${back}`, {}),
      );
    });
    onTestFinished(() => client.close());
    await client.connect(transport).catch((error: Error) => {
      throw new Error(`${error.message}\n${said}`);
    });
    expect(await consented).toMatchObject({ status: 200 });
    await useAs(agent, (name, args) => client.callTool({ name, arguments: args as Record<string, unknown> }));
  });

  describe('the AI SDK', () => {
    const { createMCPClient } = withoutLab ? {} : load('@ai-sdk/mcp');
    const toolsOf = async (transport: object): Promise<Call> => {
      const client = await createMCPClient({ transport });
      onTestFinished(() => client.close());
      const tools = await client.tools();
      return (name, args) => tools[name].execute(args, { toolCallId: name, messages: [] });
    };

    test('over stdio', async () => {
      const { Experimental_StdioMCPTransport: Transport } = load('@ai-sdk/mcp/mcp-stdio');
      const agent = await organisation.agent({ name: 'stdio' });
      const args = [BIN, 'mcp', '--profile', writeProfile(agent)];
      await useAs('stdio', await toolsOf(new Transport({ command: process.execPath, args, env: BARE })));
    });

    test('over HTTP', async () => {
      const decision = { name: 'http', grants: EVERYTHING };
      const { access_token } = await new OAuthClient(world).tokens(browser(), {}, decision);
      const headers = { authorization: `Bearer ${access_token}` };
      await useAs('http', await toolsOf({ type: 'http', url: `${world.running.baseUrl}/mcp`, headers }));
    });
  });
});
