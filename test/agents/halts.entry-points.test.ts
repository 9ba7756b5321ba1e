/** A halt of the agent, of its parent, of all agents or of the platform is in force at the next call through every entry point, until it ends. */
import { beforeAll, describe, expect, test } from 'vitest';
import { send, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { type GitWorld, startGitWorld } from '../world/git-world.ts';
import { callMcp } from '../world/oauth-client.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';

const SCOPE = 'codehost:contents.read';
const READ = { platform: 'codehost', endpoint: '/repos/acme/app/contents/readme', method: 'GET', scope: SCOPE };
const WITH_JSON = { 'content-type': 'application/json' };

/** Makes the call through an entry point; returns the text of a refusal, or undefined when the call was sent. */
type EntryPoint = (agent: TestAgent) => Promise<string | undefined>;

const refusal = ({ status, text }: { status: number; text: string }) => (status === 403 ? text : undefined);
const basic = (agent: TestAgent) => `Basic ${btoa(`x:${agent.token()}`)}`;

const ENTRY_POINTS: Record<string, EntryPoint> = {
  'POST /v1/actions': async (agent) => refusal(await agent.act(READ)),
  'an Idempotency-Key': async (agent) =>
    refusal(
      await agent.request('POST', '/v1/actions', {
        body: JSON.stringify(READ),
        headers: { ...WITH_JSON, 'idempotency-key': crypto.randomUUID() },
      }),
    ),
  '/proxy': async (agent) => refusal(await agent.get(`/proxy/codehost-main${READ.endpoint}`)),
  '/mcp': async (agent) => {
    const { method: _GET, ...asked } = READ;
    const params = { name: 'read_platform', arguments: asked };
    const { status, text } = await callMcp(agent.baseUrl, agent.token(), { method: 'tools/call', params });
    expect(status, text).toBe(200);
    return text.includes('"isError":true') ? text : undefined;
  },
  git: async (agent) =>
    refusal(
      await send(`${agent.baseUrl}/git/acme/app/info/refs?service=git-upload-pack`, {
        headers: { authorization: basic(agent) },
      }),
    ),
};

describe.each(ONE_STORE)(`halts through every entry point on %s${postgresNote}`, (store) => {
  let given: GitWorld;
  beforeAll(async () => {
    given = await startGitWorld(store);
    given.host.repository('acme/app');
    given.host.answer = ({ url = '' }, response) =>
      url.includes('info/refs') ? false : response.writeHead(200, WITH_JSON).end('{}');
  });
  const ask = async (path: string) => {
    const answer = await given.organisation.ask('POST', `/owner/${path}`, {});
    expect(answer.status, answer.text).toBe(200);
  };

  test.each<[halt: string, stop: (id: string) => string, resume: (id: string) => string, reason: RegExp]>([
    ['the agent', (id) => `agents/${id}/suspend`, (id) => `agents/${id}/resume`, /agent_halted|agent_suspended/],
    ['all agents', () => 'agents/suspend-all', () => 'agents/resume-all', /agent_halted|agent_suspended/],
    ['the platform', () => 'platforms/codehost/suspend', () => 'platforms/codehost/resume', /platform_suspended/],
  ])('of %s, for the agent and its child', async (_halt, stop, resume, reason) => {
    const agent = await given.agent();
    const child = await childOf(given.world, given.organisation, agent, {
      name: 'child',
      grants: [{ platform: 'codehost', scopes: [SCOPE] }],
    });
    const entered = async (is: (refused: string | undefined, where: string) => void) => {
      for (const [name, enter] of Object.entries(ENTRY_POINTS))
        for (const who of [agent, child]) is(await enter(who), `${name} by the ${who === child ? 'child' : 'agent'}`);
    };
    await entered((refused, where) => expect(refused, where).toBeUndefined());
    await ask(stop(agent.agentId));
    const before = given.host.seen.length;
    await entered((refused, where) => expect(refused, where).toMatch(reason));
    expect(given.host.seen.length).toBe(before);
    await ask(resume(agent.agentId));
    await entered((refused, where) => expect(refused, where).toBeUndefined());
  });
});
