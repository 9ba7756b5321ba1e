/** The MCP Inspector's command line over HTTP: against /mcp, with an access token of its own, and against /lab/mcp. */
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { send } from '../world/agent.ts';
import { deskOf } from '../world/mcp/held.ts';
import { inspect } from '../world/mcp/inspector.ts';
import { browserOf, consent } from '../world/mcp/person.ts';
import { OAuthClient } from '../world/oauth-client.ts';
import { thorough } from '../world/runner/thorough.ts';
import { DEMO_RULES, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

const TOOLS = [
  'read_platform',
  'write_platform',
  'delete_platform',
  'check_approval',
  'list_permissions',
  'request_access',
];
const ERAS = ['legacy', 'modern'] as const;
const EVERYTHING = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
const browser = () => browserOf(world, organisation.owner);
const over = (path: string, ...words: string[]) => [`${world.running.baseUrl}${path}`, '--transport', 'http', ...words];
const calling = (name: string, args: object) => [
  '--method',
  'tools/call',
  '--tool-name',
  name,
  '--tool-args-json',
  JSON.stringify(args),
];
const namesIn = (stdout: string): string[] => JSON.parse(stdout).result.tools.map(({ name }: { name: string }) => name);

describe('/mcp', () => {
  test('given only the address, the Inspector sends the person to the consent page, and then lists the tools', async () => {
    const port = await freePort();
    const words = ['--callback-url', `http://127.0.0.1:${port}/oauth/callback`, '--method', 'tools/list', '--strict'];
    let consented: Promise<unknown> | undefined;
    const listed = await inspect(over('/mcp', ...words), (text) => {
      const [, asked] = /(http\S+\/oauth\/authorize\?\S+)\s/.exec(text) ?? [];
      if (asked === undefined) return;
      consented ??= consent(browser(), asked, { name: 'Inspector', grants: EVERYTHING }).then((back) =>
        send(`http://127.0.0.1:${port}/oauth/callback?${back}`, {}),
      );
    });
    await consented;
    expect(listed.code, listed.stderr).toBe(0);
    expect(namesIn(listed.stdout)).toEqual(TOOLS);
    expect(listed.stderr).not.toMatch(/warning|error/i);
    const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
    expect(agents.find(({ name }: { name: string }) => name === 'Inspector')).toMatchObject({
      agent_type: 'mcp_client',
    });
  }, 180_000);

  describe.each(ERAS)('with a token in a header, %s', (era) => {
    const name = `inspector-${era}`;
    let words: string[];
    beforeAll(async () => {
      const decision = { name, grants: EVERYTHING };
      const { access_token } = await new OAuthClient(world).tokens(browser(), {}, decision);
      words = ['--protocol-era', era, '--header', `Authorization: Bearer ${access_token}`];
    });

    test('the Inspector lists the tools without warnings about their schemas', async () => {
      const listed = await inspect(over('/mcp', ...words, '--method', 'tools/list', '--strict'));
      expect(namesIn(listed.stdout)).toEqual(TOOLS);
      expect(listed.stderr).not.toMatch(/warning|error/i);
    }, 180_000);

    // The Inspector of an ordinary run waits as a client of the new era; those of the old one are in remote-mcp/waiting.
    test.runIf(thorough || era === 'modern')(
      'a held call waits for the approval, and gets the platform’s answer',
      async () => {
        const desk = deskOf(world, organisation);
        const args = desk.held();
        const calledWith = inspect(over('/mcp', ...words, ...calling('write_platform', args)));
        const held = await vi.waitUntil(async () => (await desk.pending(name))[0], { timeout: 20_000, interval: 50 });
        await desk.decide(held, 'approve', { note: 'Seen.' });
        const called = await calledWith;
        expect(called.code, called.stderr).toBe(0);
        const { structuredContent } = JSON.parse(called.stdout).result;
        expect(structuredContent).toMatchObject({ status: 'answered', approval_id: held, note: 'Seen.' });
        expect(desk.sentFor(args)).toBe(1);
      },
      180_000,
    );
  });
});

describe.each(ERAS)('/lab/mcp, %s', (era) => {
  // An ordinary run covers the old era with /mcp above.
  test.runIf(thorough || era === 'modern')(
    'the Inspector lists the tools without warnings about their schemas, and calls one',
    async () => {
      const words = ['--protocol-era', era];
      const listed = await inspect(over('/lab/mcp', ...words, '--method', 'tools/list', '--strict'));
      expect(listed.code, listed.stderr).toBe(0);
      expect(namesIn(listed.stdout)).toEqual(['echo', 'whoami', 'write_note']);
      expect(listed.stderr).not.toMatch(/warning|error/i);
      const called = await inspect(over('/lab/mcp', ...words, ...calling('echo', { text: 'Hello over HTTP' })));
      expect(JSON.parse(called.stdout).result.content).toEqual([{ type: 'text', text: 'Hello over HTTP' }]);
    },
    180_000,
  );
});
