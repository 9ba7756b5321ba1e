/** A call that servers may read differently passes a rule only if every reading does, through any entry point. */
import { beforeEach, describe, expect, test } from 'vitest';
import { actThrough, ENTRY_POINTS } from '../proxy/entry-points.ts';
import { rawClient } from '../proxy/raw-client.ts';
import { givenWorld, shared } from '../world/world.ts';

const WRITE = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' };
const PURGE = '!has(request.body.dry_run) && has(request.body.purge) && request.body.purge == true';

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
beforeEach(() => world.forgive());

/** An agent with these rules only. */
async function agentUnder(...rules: readonly object[]) {
  return await organisation.agent({ policy: await organisation.policy(rules), grants: { demo: {} } });
}

describe.each(ENTRY_POINTS)('through %s', (entryPoint) => {
  test('a rule denies a call when a server that is strict about one name and lenient about another would match it', async () => {
    const agent = await agentUnder({ effect: 'allow' }, { effect: 'deny', when: PURGE });
    const act = async (data: object, endpoint = '/items') => {
      const answer = await actThrough(entryPoint, agent, { ...WRITE, endpoint, data });
      return answer.status === 200 ? 'sent' : answer.body.reason;
    };
    for (const data of [
      { purge: true },
      { purge: 'true' },
      { purge: 'true', DRY_RUN: true },
      { Purge: true, Dry_Run: 1 },
    ])
      expect(await act(data)).toBe('denied_by_policy');
    expect(await act({ purge: 'true' }, '/items?dry_run=1')).toBe('denied_by_policy');
    expect(await act({ purge: 'true', dry_run: true })).toBe('sent');
    expect(await act({ DRY_RUN: true, text: 'x' })).toBe('sent');
  });

  test('an allow rule must match under every reading', async () => {
    const agent = await agentUnder({
      effect: 'allow',
      when: '!has(request.body.live) || request.body.approved == true',
    });
    const act = async (data: object) => (await actThrough(entryPoint, agent, { ...WRITE, data })).status;
    for (const data of [{ live: 1, approved: true }, { Live: 1, approved: true }, { text: 'x' }])
      expect(await act(data)).toBe(200);
    for (const data of [
      { live: 1, approved: 'true' },
      { Live: 1, approved: 'true' },
      { Live: 1, approved: false },
    ])
      expect(await act(data)).toBe(403);
  });

  test('an object in place of a list does not bypass a macro or `in`', async () => {
    const noEve = { effect: 'deny', when: 'has(request.body.to) && request.body.to.exists(a, a == "eve")' };
    const noAdmin = { effect: 'deny', when: 'has(request.body.roles) && "admin" in request.body.roles' };
    const agent = await agentUnder({ effect: 'allow' }, noEve, noAdmin);
    const act = async (data: object) => (await actThrough(entryPoint, agent, { ...WRITE, data })).status;
    for (const data of [{ to: ['ann'] }, { roles: ['reader'] }, { text: 'x' }]) expect(await act(data)).toBe(200);
    for (const data of [{ to: ['eve'] }, { to: { 0: 'eve' } }, { roles: ['admin'] }, { roles: { 0: 'admin' } }])
      expect(await act(data)).toBe(403);
    const friends = 'has(request.body.to) && request.body.to.all(a, a.endsWith("@acme.example"))';
    const only = await agentUnder({ effect: 'allow', when: friends });
    const send = async (to: object) => (await actThrough(entryPoint, only, { ...WRITE, data: { to } })).status;
    expect(await send(['a@acme.example'])).toBe(200);
    expect(await send({ 'x@acme.example': 'eve@evil.example' })).toBe(403);
  });

  test('a boolean or number literal in a rule equals every value that some server converts to it', async () => {
    const published = { effect: 'deny', when: 'has(request.body.public) && request.body.public == true' };
    const large = { effect: 'deny', when: 'has(request.body.amount) && request.body.amount == 1000' };
    const agent = await agentUnder({ effect: 'allow' }, published, large);
    const act = async (data: object) => (await actThrough(entryPoint, agent, { ...WRITE, data })).status;
    for (const data of [{ public: false }, { public: null }, { amount: 999 }, { amount: '999' }])
      expect(await act(data)).toBe(200);
    for (const value of [true, 2, 'enabled', `true${' '.repeat(40)}`]) expect(await act({ public: value })).toBe(403);
    for (const value of [1000, `${'0'.repeat(40)}1000`]) expect(await act({ amount: value })).toBe(403);
  });
});

test('a form whose indices do not count from 0 matches deny rules', async () => {
  const when = 'has(request.body.to) && request.body.to.exists(a, a == "eve")';
  await organisation.platform({ id: 'formed', manifest: { body: 'form' } });
  const policy = await organisation.policy([{ effect: 'allow' }, { effect: 'deny', when }]);
  const agent = await organisation.agent({ policy, grants: { formed: {} } });
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const send = async (body: string) =>
    (await rawClient(() => agent)('POST', '/proxy/formed-main/items', { headers, body })).status;
  for (const body of ['to[]=ann', 'to[0]=ann&to[1]=bob', 'text=x']) expect(await send(body)).toBe(200);
  for (const body of ['to[]=eve', 'to[1]=eve', 'to[7]=ann']) expect(await send(body)).toBe(403);
});

test('a limit counts calls that match under any reading', async () => {
  const limit = { most: 2, per: 'month' };
  const agent = await agentUnder({ effect: 'allow' }, { name: 'few', effect: 'deny', limit, when: PURGE });
  const act = async (data: object) => (await agent.act({ ...WRITE, data })).status;
  expect(await act({ purge: 'true', DRY_RUN: true })).toBe(200);
  expect(await act({ purge: 'true' })).toBe(200);
  for (const data of [{ purge: true }, { purge: 'true', DRY_RUN: true }]) expect(await act(data)).toBe(403);
  expect(await act({ purge: false })).toBe(200);
});
