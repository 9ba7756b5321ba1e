/** `caller` of the MCP tools: each person gets their own data, and nobody else's call or answer. */
import { randomUUID } from 'node:crypto';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { expectEnvelope } from '../world/evidence.ts';
import { envelope, startMcp, writeProfile } from '../world/mcp/mcp.ts';
import { consentVerified, HANDSHAKE, STATELESS, TRANSPORTS, waitingCalls } from '../world/mcp/people.ts';
import { callMcp } from '../world/oauth-client.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { thorough } from '../world/runner/thorough.ts';
import { everythingStored, placesOf } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES } from '../world/world.ts';

const [ANN, BOB] = [slack('U-ANN'), slack('U-BOB')];
const READ = { platform: 'docs', scope: 'docs:read', endpoint: '/items' };
const WRITE = { platform: 'docs', scope: 'docs:write', endpoint: '/items', data: { title: 'the same for all' } };

describe.each(ONE_STORE)(`the MCP tools for people on %s${postgresNote}`, (store) => {
  const people = givenPeople(store, { organisations: 'one' });
  const { world, organisation, issuer, act, connected } = people;
  const byAssertion = async (sub: string) => ({ assertion: await issuer.assertion(sub, { jti: randomUUID() }) });
  beforeAll(async () => {
    // Reads are allowed, and a POST is held.
    expect((await organisation.ask('POST', '/owner/policies/default', { rules: DEMO_RULES })).status).toBe(200);
    await connected(ANN, 'ann');
    await connected(BOB, 'bob');
    for (const person of ['ann', 'bob'])
      await consentVerified(people, (await act(await byAssertion(person))).body.consent_url, person);
  });

  describe.each(TRANSPORTS)('over %s', (_name, connect) => {
    // Shaking hands differs in how the connection begins, which the first test shows in CI.
    const testOnBoth = connect === HANDSHAKE ? test.runIf(thorough) : test;

    test('each person gets their own data, and a malformed caller is refused with the reason', async () => {
      const call = await connect(world, organisation);
      const whoReads = async (caller: object) => (await call('read_platform', { ...READ, caller })).data?.who;
      expect([await whoReads(ANN), await whoReads(BOB), await whoReads(ANN)]).toEqual(['ann', 'bob', 'ann']);
      expect(await call('read_platform', READ)).toMatchObject({ status: 'not_ready', code: 'consent_required' });
      for (const caller of [{}, { source: 'slack' }, { ...ANN, assertion: 'x' }, { who: 'ann' }, 'slack:U-ANN'])
        expect(await call('read_platform', { ...READ, caller })).toMatchObject({
          status: 'failed',
          code: 'invalid_arguments',
          detail: expect.stringContaining('caller'),
        });
      for (const caller of [slack(''), slack('x'.repeat(257)), { source: 'Slack', id: 'U-ANN' }])
        expect(await call('read_platform', { ...READ, caller })).toMatchObject({
          status: 'failed',
          code: 'invalid_request',
          detail: expect.stringContaining('caller'),
        });
    });

    testOnBoth(
      'identical calls of two people are two calls with separate answers, and repeated calls join their own',
      async () => {
        const call = await connect(world, organisation);
        const write = (caller: object) => call('write_platform', { ...WRITE, caller });
        const answers = Promise.all([write(ANN), write(BOB), write(ANN), write(BOB)]);
        for (const id of await waitingCalls(world, organisation, 2)) await organisation.approve(id);
        const [ann, bob, annAgain, bobAgain] = await answers;
        expect([ann, bob, annAgain, bobAgain].map(({ data }) => data?.who)).toEqual(['ann', 'bob', 'ann', 'bob']);
        expect(annAgain.approval_id).toBe(ann.approval_id);
        expect(bobAgain.approval_id).toBe(bob.approval_id);
        expect(bob.approval_id).not.toBe(ann.approval_id);
      },
    );

    testOnBoth(
      'different assertions identify the same person, and an invalid assertion identifies nobody',
      async () => {
        const call = await connect(world, organisation);
        const write = async (sub: string) => call('write_platform', { ...WRITE, caller: await byAssertion(sub) });
        const answers = Promise.all([write('ann'), write('bob'), write('ann')]);
        for (const id of await waitingCalls(world, organisation, 2)) await organisation.approve(id);
        expect((await answers).map(({ data }) => data?.who)).toEqual(['ann', 'bob', 'ann']);
        const over = Math.floor(Date.now() / 1000) - 600;
        const bad = { assertion: await issuer.assertion('ann', { iat: over, exp: over + 300 }) };
        for (const caller of [bad, { assertion: 'x' }])
          expect(await call('read_platform', { ...READ, caller })).toMatchObject({
            status: 'not_ready',
            code: 'consent_required',
          });
      },
    );
  });

  test('X-Svc-Caller on /mcp names the person of every call; a call for somebody else is refused', async () => {
    const { id: policy } = (await organisation.ask('GET', '/owner/policies/default')).body;
    const agent = await organisation.agent({ policy, grants: { docs: { scopeList: ['docs:read'] } } });
    const connect = async (caller: string) => {
      const client = new Client({ name: 'gateway', version: '1' });
      onTestFinished(() => client.close());
      const headers = { authorization: `Bearer ${await agent.token()}`, 'x-svc-caller': caller };
      const url = new URL(`${world.running.baseUrl}/mcp`);
      await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
      return async (args: object = {}) =>
        (await client.callTool({ name: 'read_platform', arguments: { ...READ, ...args } })).structuredContent;
    };
    for (const [caller, name, who, other] of [
      [ANN, 'id slack:U-ANN', 'ann', BOB],
      [await byAssertion('bob'), `jwt ${(await byAssertion('bob')).assertion}`, 'bob', await byAssertion('ann')],
    ] as const) {
      const call = await connect(name);
      expect(await call()).toMatchObject({ data: { who } });
      expect(await call({ caller })).toMatchObject({ data: { who } });
      expect(await call({ caller: other })).toMatchObject({ status: 'failed', code: 'caller_differs' });
    }
    for (const name of ['slack:U-ANN', 'id Slack:U-ANN', 'jwt'])
      expectEnvelope(
        await callMcp(agent.baseUrl, await agent.token(), {}, { 'x-svc-caller': name }),
        400,
        'invalid_request',
      );
  });

  // The last test, because its calls stay waiting.
  test('the state of one person’s link cannot be used for another person, and the stored data does not contain the identity', async () => {
    const canary = slack('CANARY-tool-0123456789');
    await connected(canary, 'ann');
    const { id: policy } = (await organisation.ask('GET', '/owner/policies/default')).body;
    const agent = await organisation.agent({ policy, grants: { docs: { scopeList: ['docs:read', 'docs:write'] } } });
    const mcp = startMcp(writeProfile(agent), ['--wait', '0']);
    const call = async (caller: object, more: object = {}) => {
      const _meta = envelope({ elicitation: { url: {} } });
      const params = { name: 'write_platform', arguments: { ...WRITE, caller }, _meta, ...more };
      return (await mcp.request('tools/call', params)).result;
    };
    const first = await call(canary);
    const { url } = first.inputRequests.approval.params;
    const back = { requestState: first.requestState, inputResponses: { approval: { action: 'accept' } } };
    expect((await call(BOB, back)).inputRequests.approval.params.url).not.toBe(url);
    expect((await call(canary, back)).structuredContent).toMatchObject({
      status: 'pending_approval',
      approval_url: url,
    });
    const remote = await STATELESS(world, organisation);
    expect((await remote('read_platform', { ...READ, caller: canary })).data.who).toBe('ann');
    expect(placesOf(canary.id, await everythingStored(world.environment))).toEqual([]);
  });
});
