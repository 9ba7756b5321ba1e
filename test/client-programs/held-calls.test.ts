/** A held call, from third-party agent programs with a scripted model, until it is approved and made. */
import { beforeEach, describe, expect, test } from 'vitest';
import { profileOf } from '../sidecar/run-world.ts';
import { expectStatus, send } from '../world/agent.ts';
import { runCommand } from '../world/command.ts';
import { deskOf } from '../world/mcp/held.ts';
import { browserOf, consent } from '../world/mcp/person.ts';
import { DEMO_RULES, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';
import { startModelServer } from './model-server.ts';
import { atHome, isInstalled, PROGRAMS } from './programs.ts';

describe('a held call', { timeout: 540_000 }, () => {
  // Without internet access, clients register dynamically instead of using a client metadata document of their vendor.
  const world = givenWorld('sqlite', { AGENT_BROKER_CLIENT_ID_DOCUMENTS: 'off' });
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  const model = shared(() => startModelServer());
  beforeEach(() => {
    model.told.length = 0;
    model.unknown.length = 0;
  });

  /** Makes the model call the tool, approves the held call, and expects it to be sent once and its answer to reach the model. */
  async function isMade(name: string, { prompt }: ReturnType<typeof atHome>): Promise<void> {
    const desk = deskOf(world, organisation);
    const args = desk.held();
    Object.assign(model, { tool: 'write_platform', input: args });
    const prompted = prompt('Make the item.');
    const isHeld = expect.poll(() => desk.pending(name), { timeout: 90_000, interval: 100 }).toHaveLength(1);
    await Promise.race([
      isHeld,
      prompted.code.then(() => {
        throw new Error(`it ended before: ${prompted.output()} ${model.unknown}`);
      }),
    ]);
    const [id = ''] = await desk.pending(name);
    await desk.decide(id, 'approve');
    expect(await prompted.code, prompted.output()).toBe(0);
    expect(desk.sentFor(args)).toBe(1);
    expect(model.told.join('\n'), prompted.output()).toContain(args.data.title);
  }

  for (const program of PROGRAMS) {
    const { client, bin, remote } = program;
    test.skipIf(!isInstalled(bin))(`of ${bin} over stdio waits for a person, and is made once`, async () => {
      const agent = await organisation.agent({ name: bin, grants: { demo: {} } });
      const own = atHome(program, model.url);
      const env = { HOME: own.home };
      const connected = await runCommand(['connect', client, '--profile', profileOf(agent)], { cwd: own.home, env });
      expect(connected.code, connected.stderr).toBe(0);
      await isMade(bin, own);
    });

    if (remote)
      test.skipIf(!isInstalled(bin))(`of ${bin} over HTTP, which signs in first, is made once`, async () => {
        const own = atHome(program, model.url);
        const url = `${world.running.baseUrl}/mcp`;
        if (remote.add) own.run(remote.add('agent-broker', url));
        if (remote.settings) own.write(remote.settings(own.text, 'agent-broker', url));
        const login = own.startAtTerminal(remote.login('agent-broker'));
        if (remote.types) {
          await login.shows(remote.types.once);
          for (const line of remote.types.lines('agent-broker')) {
            login.type(line);
            // A line that arrives together with its return is treated as pasted text.
            await new Promise((done) => setTimeout(done, 1_000));
            login.type('\r');
          }
        }
        await expect.poll(own.browsed, { timeout: 60_000 }).toMatch(/^http\S+$/);
        const asked = own.browsed();
        const grants = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
        const name = `${bin} remote`;
        const back = await consent(browserOf(world, organisation.owner), asked, { name, grants });
        await expectStatus(200, send(`${new URL(asked).searchParams.get('redirect_uri')}?${back}`, {}));
        if (remote.types) await login.shows(remote.types.ended);
        else expect(await login.ended).toMatchObject({ code: 0 });
        await isMade(name, own);
      });
  }

  test.runIf(process.env.CI)('was tested with every program: none is missing', () => {
    expect(PROGRAMS.filter(({ bin }) => !isInstalled(bin)).map(({ bin }) => bin)).toEqual([]);
  });
});
