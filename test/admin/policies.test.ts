import { beforeAll, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { expectDenied, expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, type Organisation, READ, shared } from '../world/world.ts';

const ALLOW = [{ effect: 'allow', scopes: ['demo:*'] }];
const DENY = [{ name: 'no', effect: 'deny' }];

/** Each with the beginning of one of its problems. */
const WRONG_RULES: [string, unknown, string][] = [
  ['no list', {}, 'rules: a list belongs here'],
  ['no rules', undefined, 'rules: is missing'],
  ['a rule that is none', ['allow'], 'rules[0]: a mapping belongs here'],
  ['no effect', [{ effect: 'allow' }, {}], 'rules[1].effect: is missing'],
  ['an effect that is none', [{ effect: 'denny' }], 'rules[0].effect: "denny" is not allowed; write "allow"'],
  [
    'an unknown member',
    [{ effect: 'deny', method: ['GET'] }],
    'rules[0].method: "method" is not known here. Did you mean "methods"?',
  ],
  ['an empty list', [{ effect: 'deny', scopes: [] }], 'rules[0].scopes: is empty'],
  ['a method that is none', [{ effect: 'deny', methods: ['get'] }], 'rules[0].methods[0]: "get" is not allowed'],
  ['an endpoint without a slash', [{ effect: 'deny', endpoints: ['admin'] }], 'rules[0].endpoints[0]: '],
  ['a condition that does not parse', [{ effect: 'deny', when: 'request.' }], 'rules[0].when: '],
  ['a name twice', [DENY[0], DENY[0]], 'rules[1].name: there are two rules'],
  ['an effect of guardrails', [{ effect: 'suspend' }], 'rules[0].effect: "suspend" is not allowed'],
  ['too many', Array(501).fill(DENY[0]), 'rules: has more than 500 entries'],
];

describe.each(ONE_STORE)(`owners’ policies on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.organisation());
  const other = shared(() => world.organisation());
  beforeAll(async () => {
    for (const each of [organisation, other]) await each.platform();
  });

  const post = (path: string, body: unknown, by?: Parameters<Organisation['ask']>[3]) =>
    organisation.ask('POST', path, body, by);
  const events = async (of = organisation) => {
    const { rows } = (await of.ask('GET', '/owner/audit')).body;
    return rows.filter(({ kind }: { kind: string }) => kind === 'event');
  };

  test('creating, assigning and changing a policy: each in force at the next call, and recorded', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const agent = await fresh.agent({ policy: null });
    await expectDenied(world, agent, READ, 'no_policy_assigned');
    const made = await expectStatus(201, fresh.ask('POST', '/owner/policies', { name: 'careful', rules: ALLOW }));
    expect(made.body).toEqual({
      id: expect.any(String),
      name: 'careful',
      version: 1,
      created_at: expect.any(String),
      changed_at: made.body.created_at,
      agents: 0,
      rules: ALLOW,
      words: ['every call with demo:* passes'],
      warnings: [],
    });
    const { id } = made.body;
    const assigned = await fresh.ask('POST', `/owner/agents/${agent.agentId}/policy`, { policy: 'careful' });
    expect([assigned.status, assigned.body.policy_id], assigned.text).toEqual([200, id]);
    expect((await agent.act(READ)).status).toBe(200);
    const changed = await expectStatus(200, fresh.ask('POST', `/owner/policies/${id}`, { rules: DENY, version: 1 }));
    expect(changed.body).toMatchObject({ id, version: 2, agents: 1, rules: DENY });
    const denied = await expectDenied(world, agent, READ, 'denied_by_policy');
    expect(denied.body.audit_id).toBeDefined();
    const again = await fresh.ask('POST', '/owner/policies/careful', { rules: ALLOW });
    expect([again.status, again.body.version], again.text).toEqual([200, 3]);
    expect((await agent.act(READ)).status).toBe(200);

    expect((await fresh.ask('GET', '/owner/policies')).body.policies).toContainEqual({
      id,
      name: 'careful',
      version: 3,
      created_at: made.body.created_at,
      changed_at: again.body.changed_at,
      agents: 1,
    });
    expect(Date.parse(again.body.changed_at)).toBeGreaterThanOrEqual(Date.parse(changed.body.changed_at));
    expect((await fresh.ask('GET', '/owner/policies/careful')).body).toMatchObject({ id, version: 3, rules: ALLOW });
    expect((await fresh.ask('GET', `/owner/policies/${id.toUpperCase()}`)).body).toMatchObject({ id, version: 3 });

    const told = [];
    for (const row of await events(fresh)) {
      const { receipt } = (await fresh.ask('GET', `/v1/audit/${row.id}/receipt`)).body;
      const { payload } = await verifyReceipt(world, receipt);
      const { by, how, ...facts } = payload.change;
      expect([by, how]).toEqual([fresh.owner.id, 'api']);
      told.unshift([payload.reason, payload.agent, facts]);
    }
    const policy = (version: number) => ({ id, name: 'careful', version });
    expect(told).toEqual([
      ['policy_created', null, { policy: policy(1) }],
      ['policy_assigned', agent.agentId, { policy: policy(1), before: null }],
      ['policy_changed', null, { policy: policy(2) }],
      ['policy_changed', null, { policy: policy(3) }],
    ]);
  });

  test('all versions are kept, newest first, page by page', async () => {
    const { id } = (await post('/owner/policies', { name: 'paged', rules: ALLOW })).body;
    for (let i = 2; i <= 5; i++) await post(`/owner/policies/${id}`, { rules: [{ name: `v${i}`, effect: 'deny' }] });
    const first = (await organisation.ask('GET', `/owner/policies/${id}/versions?limit=2`)).body;
    expect(first.versions.map(({ version }: { version: number }) => version)).toEqual([5, 4]);
    expect(first.versions[0].rules).toEqual([{ name: 'v5', effect: 'deny' }]);
    const second = (await organisation.ask('GET', `/owner/policies/paged/versions?before=${first.next}&limit=3`)).body;
    expect(second.versions.map(({ version }: { version: number }) => version)).toEqual([3, 2, 1]);
    expect(second.next).toBeNull();
    // Each names the row of its author.
    const rows = await events();
    for (const { version, made_by: made, words } of [...first.versions, ...second.versions]) {
      expect(made).toMatchObject({ by: organisation.owner.id, how: 'api' });
      const row = rows.find((one: { id: string }) => one.id === made.audit_id);
      expect(row.flags.change.policy).toEqual({ id, name: 'paged', version });
      expect(words).toEqual([version === 1 ? 'every call with demo:* passes' : 'every call is denied']);
    }
    for (const query of ['limit=0', 'limit=101', 'before=0', 'before=x']) {
      const answer = await organisation.ask('GET', `/owner/policies/${id}/versions?${query}`);
      expectEnvelope(answer, 400, 'invalid_request');
    }
  });

  test('a change based on an old version is refused; of concurrent changes one succeeds', async () => {
    const { id } = (await post('/owner/policies', { name: 'contended', rules: ALLOW })).body;
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        post(`/owner/policies/${id}`, { version: 1, rules: [{ name: `r${i}`, effect: 'deny' }] }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
    const refused = answers.find(({ status }) => status === 409)!;
    expectEnvelope(refused, 409, 'conflict');
    expect(refused.body.version).toBe(2);
    const unseen = await Promise.all(Array.from({ length: 5 }, () => post(`/owner/policies/${id}`, { rules: DENY })));
    expect(unseen.map(({ body }) => body.version).sort()).toEqual([3, 4, 5, 6, 7]);
    const made = await Promise.all(
      Array.from({ length: 4 }, () => post('/owner/policies', { name: 'once', rules: ALLOW })),
    );
    expect(made.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });

  test.each(WRONG_RULES)('rules with %s are refused, the problem named by its path', async (_name, rules, says) => {
    const { id } = (await post('/owner/policies', { name: crypto.randomUUID(), rules: ALLOW })).body;
    for (const [path, body] of [
      [`/owner/policies/${id}`, { rules }],
      ['/owner/policies', { name: 'wrong', rules }],
    ] as const) {
      const answer = await post(path, body);
      expectEnvelope(answer, 400, 'invalid_governance');
      expect(answer.body.problems.join('\n')).toContain(says);
      expect(answer.body.detail).toContain(answer.body.problems[0]);
    }
    expect((await organisation.ask('GET', `/owner/policies/${id}`)).body.version).toBe(1);
    expectEnvelope(await organisation.ask('GET', '/owner/policies/wrong'), 404, 'not_found');
  });

  test.each([
    ['a name with a slash', { name: 'a/b', rules: ALLOW }],
    ['no name', { rules: ALLOW }],
    ['an unknown member', { name: 'x', rules: ALLOW, rule: [] }],
    ['a list', []],
  ])('a body with %s is refused', async (_name, body) => {
    expectEnvelope(await post('/owner/policies', body), 400, 'invalid_request');
  });

  test('rules that are allowed but probably not intended cause a warning', async () => {
    const rules = [
      { effect: 'deny', platforms: ['demi'], scopes: ['demo:raed'] },
      { effect: 'allow', when: 'request.body.amount < 5' },
    ];
    const { body } = await post('/owner/policies', { name: 'warned', rules });
    expect(body.warnings.map((warning: string) => warning.split(':')[0])).toEqual([
      'rules[1].when',
      'rules[0].platforms[0]',
      'rules[0].scopes[0]',
    ]);
    expect(body.warnings[1]).toContain('Did you mean "demo"?');
  });

  test('a rule that needs more people than may decide causes a warning, also in guardrails and when rules are tried', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const rules = (approvers: number) => [{ name: 'r', effect: 'require_approval', methods: ['POST'], approvers }];
    const has = (await fresh.ask('GET', '/owner/owners')).body.owners.length;
    await fresh.addOwner('viewer');
    const warns = (at: string) => [
      `${at}.approvers: ${has + 1} people have to approve, and the organisation has ${has} who may decide: such calls can only be denied, or expire.`,
    ];
    const make = async () =>
      (
        await expectStatus(
          201,
          fresh.ask('POST', '/owner/policies', { name: `p-${crypto.randomUUID().slice(0, 8)}`, rules: rules(has + 1) }),
        )
      ).body;
    expect((await make()).warnings).toEqual(warns('rules[0]'));
    const guardrails = await fresh.ask('POST', '/owner/guardrails', { guardrails: rules(has + 1) });
    expect(guardrails.body.warnings, guardrails.text).toEqual(warns('guardrails[0]'));
    const tried = { days: 1, guardrails: rules(has + 1) };
    expect((await fresh.ask('POST', '/owner/simulate/recorded', tried)).body.warnings).toEqual(warns('guardrails[0]'));
    await fresh.addOwner('approver');
    expect((await make()).warnings).toEqual([]);
  });

  test('a channel of decide_in that does not exist, or has no buttons, causes a warning', async () => {
    const fresh = await world.organisation();
    const rule = { name: 'r', effect: 'require_approval', methods: ['POST'], decide_in: ['ops'] };
    const warned = async () => (await fresh.ask('POST', '/owner/guardrails', { guardrails: [rule] })).body.warnings;
    const at = 'guardrails[0].decide_in[0]: "ops": this channel';
    expect(await warned()).toEqual([`${at} does not exist. No button decides there.`]);
    await expectStatus(201, fresh.ask('POST', '/owner/channels', { name: 'ops', kind: 'ntfy', topic: 'acme-1' }));
    expect(await warned()).toEqual([`${at} has no buttons: only slack and telegram have. No button decides there.`]);
  });

  test('assigning an unknown policy, or one to a revoked agent, is refused', async () => {
    const agent = await organisation.agent();
    const assign = (policy: unknown, id = agent.id) => post(`/owner/agents/${id}/policy`, { policy });
    const theirs = (await other.ask('POST', '/owner/policies', { name: 'theirs', rules: ALLOW })).body;
    for (const policy of ['none', theirs.id, 'theirs', crypto.randomUUID()])
      expectEnvelope(await assign(policy), 400, 'invalid_request');
    for (const policy of [null, '', 5, undefined]) expectEnvelope(await assign(policy), 400, 'invalid_request');
    const mine = (await post('/owner/policies', { name: 'mine', rules: ALLOW })).body;
    for (const id of ['x', '%00', crypto.randomUUID(), (await other.agent()).id])
      expectEnvelope(await assign(mine.id, id), 404, 'not_found');
    await post(`/owner/agents/${agent.id}/revoke`, {});
    expectEnvelope(await assign(mine.id), 409, 'conflict');
  });

  test('only admins of the organisation can change policies', async () => {
    const agent = await organisation.agent();
    const { id } = (await post('/owner/policies', { name: 'guarded', rules: ALLOW })).body;
    const changes: [string, unknown][] = [
      ['/owner/policies', { name: 'n', rules: ALLOW }],
      [`/owner/policies/${id}`, { rules: DENY }],
      [`/owner/agents/${agent.id}/policy`, { policy: id }],
      ['/owner/guardrails', { guardrails: [] }],
    ];
    for (const role of ['viewer', 'approver'] as const) {
      const owner = await organisation.addOwner(role);
      for (const path of [
        '/owner/policies',
        `/owner/policies/${id}`,
        `/owner/policies/${id}/versions`,
        '/owner/guardrails',
      ])
        expect((await organisation.ask('GET', path, undefined, owner)).status).toBe(200);
      for (const [path, body] of changes) expectEnvelope(await post(path, body, owner), 403, 'forbidden');
    }
    for (const wrong of [id, 'guarded']) {
      expectEnvelope(await other.ask('GET', `/owner/policies/${wrong}`), 404, 'not_found');
      expectEnvelope(await other.ask('GET', `/owner/policies/${wrong}/versions`), 404, 'not_found');
      expectEnvelope(await other.ask('POST', `/owner/policies/${wrong}`, { rules: DENY }), 404, 'not_found');
    }
    for (const wrong of ['%00', 'x%20y', '..%2f', crypto.randomUUID()])
      expectEnvelope(await organisation.ask('GET', `/owner/policies/${wrong}`), 404, 'not_found');
    expect((await other.ask('GET', '/owner/policies')).text).not.toContain('guarded');
  });

  test('a change that cannot be recorded is not made', async () => {
    const agent = await organisation.agent();
    const { id } = (await post('/owner/policies', { name: 'unrecorded', rules: ALLOW })).body;
    await whileAuditRowsAreRefused(world, async () => {
      for (const [path, body] of [
        ['/owner/policies', { name: 'unmade', rules: ALLOW }],
        [`/owner/policies/${id}`, { rules: DENY }],
        [`/owner/agents/${agent.id}/policy`, { policy: id }],
        ['/owner/guardrails', { guardrails: [{ name: 'g', effect: 'deny' }] }],
      ] as const)
        expectEnvelope(await post(path, body), 503, 'audit_unavailable');
    });
    expect((await organisation.ask('GET', `/owner/policies/${id}`)).body).toMatchObject({ version: 1, agents: 0 });
    expectEnvelope(await organisation.ask('GET', '/owner/policies/unmade'), 404, 'not_found');
    expect((await organisation.ask('GET', '/owner/guardrails')).body).toEqual({
      version: 0,
      guardrails: [],
      words: [],
    });
  });

  test('guardrails are in force at the next call, whatever the policy allows, and recorded', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const agent = await fresh.agent({ policy: await fresh.policy(ALLOW) });
    const change = (body: unknown) => fresh.ask('POST', '/owner/guardrails', body);
    expect((await agent.act(READ)).status).toBe(200);
    const guardrails = [{ name: 'freeze', effect: 'deny', methods: ['GET'] }];
    const changed = await change({ guardrails, version: 0 });
    expect([changed.status, changed.body], changed.text).toEqual([
      200,
      { version: 1, guardrails, words: ['GET is denied'], warnings: [] },
    ]);
    await expectDenied(world, agent, READ, 'denied_by_guardrail');
    expect((await fresh.ask('GET', '/owner/guardrails')).body).toEqual({
      version: 1,
      guardrails,
      words: ['GET is denied'],
    });
    const refused = await change({ guardrails: [], version: 0 });
    expectEnvelope(refused, 409, 'conflict');
    expect(refused.body.version).toBe(1);
    expect((await change({ guardrails: [] })).body).toMatchObject({ version: 2, guardrails: [], warnings: [] });
    const { versions, next } = (await fresh.ask('GET', '/owner/guardrails/versions?limit=5')).body;
    expect([versions.map(({ version }: { version: number }) => version), next]).toEqual([[2, 1], null]);
    expect(versions[1]).toMatchObject({
      rules: guardrails,
      words: ['GET is denied'],
      made_by: { by: fresh.owner.id, how: 'api' },
    });
    expect((await agent.act(READ)).status).toBe(200);
    const told = [];
    for (const row of await events(fresh)) {
      const { receipt } = (await fresh.ask('GET', `/v1/audit/${row.id}/receipt`)).body;
      told.push((await verifyReceipt(world, receipt)).payload);
    }
    expect(told.map(({ reason, change }) => [reason, change.guardrails.version])).toEqual([
      ['guardrails_changed', 2],
      ['guardrails_changed', 1],
    ]);
  });

  test.each<[string, unknown, string]>([
    ['allows', [{ name: 'a', effect: 'allow' }], 'guardrails[0].effect: "allow" is not allowed'],
    ['has no name', [{ effect: 'deny' }], 'guardrails[0].name: is missing'],
    [
      'has the name of another',
      [
        { name: 'a', effect: 'deny' },
        { name: 'a', effect: 'deny' },
      ],
      'guardrails[1].name: there are two',
    ],
    ['has a condition that does not parse', [{ name: 'a', effect: 'deny', when: ')' }], 'guardrails[0].when: '],
  ])('a guardrail that %s is refused', async (_name, guardrails, says) => {
    const answer = await post('/owner/guardrails', { guardrails });
    expectEnvelope(answer, 400, 'invalid_governance');
    expect(answer.body.problems.join('\n')).toContain(says);
    expect((await organisation.ask('GET', '/owner/guardrails')).body.version).toBe(0);
  });
});
