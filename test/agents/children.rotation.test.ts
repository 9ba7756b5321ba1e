/** Children of an agent whose key is replaced, or whose workload is removed: whoever had the former credential may have made them. */
import { describe, expect, test } from 'vitest';
import { makeKeyPair, send, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { fresh, givenWorld } from '../world/given.ts';
import { WRITE } from '../world/requests.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { DEMO_RULES } from '../world/world.ts';

describe.each(STORES)(`children of a former credential on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation({ rules: DEMO_RULES }));
  const keys = makeKeyPair();

  const bind = async ({ id }: TestAgent) => {
    const made = await organisation.ask('POST', `/owner/agents/${id}/bootstrap-token`, { rotate: true });
    const bound = await send(`${world.running.baseUrl}/v1/agents/bind`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ bootstrap_token: made.body.bootstrap_token, public_key_pem: keys.publicPem }),
    });
    expect(bound.status, bound.text).toBe(200);
  };
  const apply = async (text: string) => {
    const applied = await organisation.ask('POST', '/owner/governance/apply', { text, values: {} });
    expect(applied.status, applied.text).toBe(200);
  };
  const workload = async ({ id }: TestAgent) => {
    const path = `/owner/agents/${id}/workload`;
    const meant = { issuer: 'https://cluster.example', subject: 'triage', jwks_uri: 'https://cluster.example/keys' };
    expect((await organisation.ask('POST', path, meant)).status).toBe(200);
    expect((await organisation.ask('DELETE', path)).status).toBe(200);
  };
  const pem = () => keys.publicPem.trim().replaceAll('\n', '\\n');

  test.each<[string, string, (agent: TestAgent) => Promise<void>]>([
    ['a bootstrap token', 'agent_bound', bind],
    ['a governance file', '', () => apply(`agents: { triage: { public_key: { pem: "${pem()}\\n" } } }`)],
    ['the removal of its workload', 'workload_removed', workload],
  ])('end with it, by %s; what they wait for ends, and the agent makes others', async (_what, reason, replace) => {
    const agent = await organisation.agent({ rules: DEMO_RULES });
    const bystander = await childOf(
      world,
      organisation,
      await organisation.agent({ name: 'other', keys: makeKeyPair() }),
    );
    const children = [await childOf(world, organisation, agent), await childOf(world, organisation, agent)];
    const held = await children[0]!.act(WRITE);
    expect(held.status, held.text).toBe(202);
    await replace(agent);
    for (const child of children)
      expectEnvelope(await withoutCalls(world, () => child.act(WRITE)), 403, 'agent_halted');
    const { body } = await organisation.ask('GET', `/owner/approvals/${held.body.approval_id}`);
    expect(body.status).toBe('expired');
    expect((await bystander.act(WRITE)).status).toBe(202);
    if (reason !== 'workload_removed') agent.keys = keys;
    expect((await agent.get('/v1/agents/me')).status).toBe(200);
    // The file gives no grants.
    if (reason === '') return;
    expect((await (await childOf(world, organisation, agent)).act(WRITE)).status).toBe(202);
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    const { id } = rows.find((row: { reason: string }) => row.reason === reason);
    const receipt = (await organisation.ask('GET', `/v1/audit/${id}/receipt`)).body.receipt as string;
    const { change } = JSON.parse(Buffer.from(receipt.split('.')[1]!, 'base64url').toString());
    expect(change.children_ended).toBe(2);
  });
});
