import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exportGovernance } from '../../broker/config-plan/export.ts';
import { parsePublicKey } from '../../broker/crypto/public-key.ts';
import { bindKey } from '../../broker/store/agent-keys.ts';
import { moveAgent, putAgent, updateAgent } from '../../broker/store/agents.ts';
import { putOwner } from '../../broker/store/organisations.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import {
  ANN,
  CRM,
  changedAfterReading,
  DAY,
  Governed,
  newPublicKey,
  openBroker,
  problemsOf,
  quote,
  titles,
} from './governance-world.ts';

const PEM = newPublicKey();
/** Each agent has a key of its own. */
const PEMS = [PEM, newPublicKey(), newPublicKey()];

describe.each(ONE_STORE)(`exporting governance on %s${postgresNote}`, async (kind) => {
  const broker = await openBroker(kind);
  const governed = async () =>
    (await Governed.make(broker)).secret('env:CRM_TOKEN', 'CANARY-1').secret('file:secrets/hub', 'CANARY-2');

  it('writes the present state in the form that a person would use', async () => {
    const world = await governed();
    await world.apply(`organisation: export ${kind}
owners:
  - { email: bob@acme.example, role: approver }
${CRM}  codehost: { use: github, base_url: "https://git.acme.example/api/v3", headers: { X-From: acme } }
connections:
  crm-main: { platform: crm, secret: { env: CRM_TOKEN } }
  hub: { platform: codehost, secret: { file: secrets/hub }, default: false, idle_seconds: 600, wait_seconds: 0 }
policies:
  careful:
    rules:
      - { name: no big ones, effect: deny, when: "has(request.body.amount) && request.body.amount > 1000" }
      - { effect: allow, platforms: [crm], scopes: ["crm:*.read"], methods: [GET], endpoints: ["/contacts/**"] }
guardrails:
  - { name: "no", effect: require_approval, methods: [DELETE] }
agents:
  triage:
    owner: bob@acme.example
    policy: careful
    labels: ["team:billing", prod]
    public_key: { pem: ${quote(PEM)} }
    grants:
      crm:
        - { scopes: ["crm:contacts.read"], expires: 30d, recipients: [] }
        - { scopes: ["crm:contacts.write"], require_approval: true, connection: crm-main, expires: "2027-01-01T00:00:00+01:00" }
      codehost: { scopes: ["codehost:contents.read"], repos: ["acme/*"], allow_repo_creation: true, refs: ["agent/*", "refs/tags/v*"], ref_changes: [create], connection: hub }
  helper: {}
`);
    const text = await exportGovernance(broker, world.id, world.now);
    expect(text).toBe(`organisation: export ${kind}
publish_identity_documents: false
auto_suspend: false
retention: false
passkey_deciders: default
owners:
  - email: ann@acme.example
    role: admin
  - email: bob@acme.example
    role: approver
platforms:
  codehost:
    use: github
    base_url: https://git.acme.example/api/v3
    headers:
      X-From: acme
  crm:
    kind: rest
    base_url: https://crm.example/api
    auth:
      type: bearer
    scopes:
      crm:contacts.read:
        - GET /contacts
        - GET /contacts/*
      crm:contacts.write:
        - POST /contacts
        - PATCH /contacts/*
    recipients:
      POST /contacts:
        - /to
caller_issuers: []
connections:
  crm-main:
    platform: crm
    secret:
      env: CRM_TOKEN
  hub:
    platform: codehost
    secret:
      file: secrets/hub
    default: false
    idle_seconds: 600
    wait_seconds: 0
channels: {}
audit_sinks: {}
policies:
  careful:
    rules:
      - name: no big ones
        effect: deny
        when: has(request.body.amount) && request.body.amount > 1000
      - effect: allow
        platforms:
          - crm
        scopes:
          - crm:*.read
        methods:
          - GET
        endpoints:
          - /contacts/**
guardrails:
  - name: "no"
    effect: require_approval
    methods:
      - DELETE
agents:
  helper:
    owner: ann@acme.example
    policy: default
    labels: []
  triage:
    owner: bob@acme.example
    policy: careful
    labels:
      - prod
      - team:billing
    public_key:
      pem: ${quote(PEM)}
    grants:
      codehost:
        scopes:
          - codehost:contents.read
        repos:
          - acme/*
        allow_repo_creation: true
        refs:
          - agent/*
          - refs/tags/v*
        ref_changes:
          - create
        connection: hub
      crm:
        - scopes:
            - crm:contacts.read
          expires: "2026-07-01T12:00:00.000Z" # 30d since 2026-06-01T12:00:00.000Z
          recipients: []
        - scopes:
            - crm:contacts.write
          expires: "2027-01-01T00:00:00+01:00"
          require_approval: true
          connection: crm-main
`);
    expect(text).not.toContain('CANARY');
    const before = await world.present();
    world.now += 1000;
    expect((await world.apply(text)).plan).toEqual({ changes: [], warnings: [] });
    expect(await world.present()).toEqual(before);
  });

  it.each(['bob@corp', 'bob@Übermut.example', 'bob'])(
    'exports an owner %j, as an identity provider may name one',
    async (email) => {
      const world = await governed();
      await world.apply('agents: { t: { labels: [] } }');
      const { id } = await world.agent('t');
      const owner = { organisation_id: world.id, id: crypto.randomUUID(), email, created_at: world.now };
      await putOwner(broker.store.db, { ...owner, role: 'admin', origin: 'added', role_by_groups: 1 });
      await updateAgent(broker.store.db, world.id, id, { owner_id: owner.id });
      const text = await exportGovernance(broker, world.id, world.now);
      expect(text).toContain(`owner: ${email}\n`);
      expect((await world.plan(text)).changes).toEqual([]);
    },
  );

  it('exports one state, also when governance is changed while it is read', async () => {
    const world = await governed();
    await world.apply('policies: { old: { rules: [] } }\nagents: { a: { policy: old } }');
    const change = () => world.apply('policies: { new: { rules: [] } }\nagents: { a: { policy: new } }');
    const { store } = broker;
    // The organisation is read first, and the agents after the policies.
    const db = changedAfterReading(store.db, 'policies as p', change, 'execute');
    const text = await exportGovernance({ store: { ...store, db } }, world.id, world.now);
    expect(text).toContain('policies:\n  new:\n');
    expect(text).toContain('policy: new\n');
    expect(text).not.toMatch(/old|under no policy/);
  });

  it('describes in comments what a file cannot express, and still applies without a change', async () => {
    const world = await governed();
    await world.apply(`${CRM}connections: { c: { platform: crm, secret: { env: CRM_TOKEN } }, d: { platform: crm, default: true } }
agents: { a: { grants: { crm: { scopes: ["crm:contacts.read", "crm:contacts.write"] } } }, gone: {} }`);
    const { db } = broker.store;
    await db
      .updateTable('connections')
      .set({ secret_reference: null })
      .where('organisation_id', '=', world.id)
      .execute();
    const model = await world.agent('a');
    const other = (letter: string, name: string, more = {}) =>
      putAgent(db, {
        ...model,
        id: crypto.randomUUID(),
        agent_id: `agt_${letter.repeat(14)}${crypto.randomUUID().slice(0, 6)}`,
        name,
        created_at: model.created_at + 1,
        ...more,
      });
    await other('a', 'a', { origin: 'owner' });
    await other('b', 'späti', { origin: 'owner' });
    // A name that older releases accepted: its display differs from its characters, and a file cannot contain it.
    await other('d', 'a\u202eb\ufeff', { origin: 'owner' });
    const key = parsePublicKey(PEM);
    if (!key.ok) throw new Error(key.error);
    const waits = { public_key_pem: key.pem, key_fingerprint: key.fingerprint };
    await other('c', 'new', { ...waits, status: 'pending', origin: 'registration' });
    const gone = await world.agent('gone');
    const move = {
      from: ['pending_bind'] as const,
      to: 'revoked' as const,
      cause: 'owner_manual' as const,
      detail: null,
    };
    await moveAgent(db, { organisationId: world.id, id: gone.id }, move, world.now);
    const none = 'approvals access_requests registrations consents invites standing_approvals'.split(' ');
    const ended = Object.fromEntries(none.map((kind) => [kind, 0]));
    const halted = {
      agents_stopped: JSON.stringify({ at: 0, by: 'x', detail: null, agents: 1 }),
      restored: JSON.stringify({ at: 0, madeAt: null, ended, noted: true }),
    };
    await db.updateTable('organisations').set(halted).where('id', '=', world.id).execute();
    const text = await exportGovernance(broker, world.id, world.now);
    expect(text).toMatch(/# All agents are stopped here, but this is not in the file/);
    expect(text).toMatch(/# This store was restored and is waiting for its review/);
    expect(text).toContain(
      '  # Its secret did not come from a governance file; the stored one stays.\n  c:\n    platform: crm\n',
    );
    expect(text).toContain('  # It has no secret yet.\n  d:\n    platform: crm\n    default: true\n');
    expect(text).toMatch(/# "a" \(agt_a{14}\w+\) is not here: another agent has the same name\.\n/);
    expect(text).toMatch(/\n {2}new:\n {4}owner: .*\n {4}policy: default\n {4}labels: \[\]\n\n/);
    expect(text).toMatch(/# "new" \(agt_\w+\) has not collected its key yet, and is here without one\.\n/);
    expect(text).toMatch(/# "späti" \(agt_\w+\) is not here: a file cannot have this name\.\n/);
    expect(text).toMatch(/# "a\\u202eb\\ufeff" \(agt_\w+\) is not here: a file cannot have this name\.\n/);
    expect(text).not.toContain('gone');
    const twin = (await world.present()).agents.find((agent) => agent.agent_id.startsWith('agt_aaaaaaaaaaaaaa'))!;
    await moveAgent(db, { organisationId: world.id, id: twin.id }, { ...move }, world.now);
    expect((await world.plan(text)).changes).toEqual([]);
  });

  it('escapes characters that a file may not contain, and reads them again', async () => {
    const world = await governed();
    const hidden = String.raw`a\u202eb\u2066\uFEFF\u0085\u0007\e\x7F`;
    await world.apply(`policies:
  p:
    rules: [{ effect: deny, when: "request.endpoint == '${hidden}'" }]
`);
    const text = await exportGovernance(broker, world.id, world.now);
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufeff]/);
    expect(text).toContain(String.raw`when: "request.endpoint == 'a\u202eb\u2066\ufeff\u0085\a\e\u007f'"`);
    expect((await world.plan(text)).changes).toEqual([]);
  });

  it('says of a connection with tokens per person that it needs no secret', async () => {
    const world = await governed();
    const file = (enabled: boolean) => `platforms:
  docs:
    kind: rest
    base_url: https://docs.example/api
    auth: { type: oauth2, issuer: "https://id.example", client_id: web, scopes: [api] }
    scopes: { "docs:read": ["GET /**"] }
    per_person: { enabled: ${enabled} }
connections: { docs: { platform: docs } }
`;
    await world.apply(file(true));
    const text = await exportGovernance(broker, world.id, world.now);
    expect(text).toContain(
      '  # It needs no secret: people give tokens of their own for it.\n  docs:\n    platform: docs\n',
    );
    expect((await world.plan(text)).changes).toEqual([]);
    await world.apply(file(false));
    expect(await exportGovernance(broker, world.id, world.now)).toContain('  # It has no secret yet.\n  docs:\n');
  });

  it('writes empty sections, so that applying removes what another broker has there', async () => {
    const world = await governed();
    const text = await exportGovernance(broker, world.id, world.now);
    expect(text.slice(text.indexOf('platforms'))).toBe(
      'platforms: {}\ncaller_issuers: []\nconnections: {}\nchannels: {}\naudit_sinks: {}\npolicies: {}\nguardrails: []\nagents: {}\n',
    );
    const other = await governed();
    await other.apply(
      `${CRM}connections: { c: { platform: crm, secret: { env: CRM_TOKEN } } }\nguardrails: [{ name: stop, effect: deny }]\npolicies: { own: { rules: [] } }\nagents: { a: { policy: own } }`,
    );
    await other.apply(text.replace(/^organisation: .*\n/, ''));
    const { platforms, connections, policies, guardrails, agents } = await other.present();
    expect([[...platforms], connections, [...policies.keys()], guardrails]).toEqual([[], [], ['default'], []]);
    expect(agents.map(({ status }) => status)).toEqual(['revoked']);
  });

  it('exports suspensions; applying suspends, and never resumes', async () => {
    const world = await governed();
    const file = (more = '') =>
      `${CRM.replace('kind: rest', `kind: rest${more && '\n    suspended: true'}`)}agents: { a: { ${more}public_key: { pem: ${quote(PEM)} } }, b: { ${more} } }`;
    await world.apply(file());
    expect(titles((await world.apply(file('suspended: true, '))).plan.changes)).toEqual([
      'update platform crm',
      'update agent a',
      'update agent b',
    ]);
    const before = await world.present();
    expect([...before.suspendedPlatforms]).toEqual(['crm']);
    expect(before.agents.map(({ status, status_cause }) => [status, status_cause])).toEqual([
      ['suspended', 'owner_manual'],
      ['suspended', 'owner_manual'],
    ]);
    expect((await world.apply(file())).plan.changes).toEqual([]);
    const text = await exportGovernance(broker, world.id, world.now);
    expect(text.match(/^ {4}suspended: true$/gm)).toHaveLength(3);
    expect((await world.apply(text)).plan.changes).toEqual([]);
    expect(await world.present()).toEqual(before);
    const other = await governed();
    await other.apply(text.replace(/^organisation: .*\n/, ''));
    const { suspendedPlatforms, agents } = await other.present();
    expect([[...suspendedPlatforms], agents.map(({ status }) => status)]).toEqual([
      ['crm'],
      ['suspended', 'suspended'],
    ]);
    expect(await problemsOf('agents: { a: { suspended: false } }')).toEqual([
      expect.stringContaining('a file never resumes'),
    ]);
  });

  it('marks a grant as ended, and it stays ended at another broker', async () => {
    const world = await governed();
    const file = `${CRM}connections: { c: { platform: crm, secret: { env: CRM_TOKEN } } }\nagents: { a: { grants: { crm: { scopes: ["crm:contacts.read"], expires: 30d } } } }`;
    await world.apply(file);
    const since = world.now;
    world.now += 31 * DAY;
    const text = await exportGovernance(broker, world.id, world.now);
    const end = new Date(since + 30 * DAY).toISOString();
    expect(text).toContain(`expires: "${end}" # ended; 30d since ${new Date(since).toISOString()}\n`);
    expect((await world.apply(text)).plan.changes).toEqual([]);
    const other = await governed();
    other.now = world.now;
    const { plan } = await other.apply(text.replace(/^organisation: .*\n/, ''));
    expect(plan.warnings.map(({ message }) => message)).toContainEqual(expect.stringContaining(`ended on ${end}`));
    expect([...(await other.present()).grants.values()].flat()[0]!.expires_at).toBe(since + 30 * DAY);
  });

  it('keeps agents that were created by hand when its own export is applied', async () => {
    const world = await governed();
    await world.apply('agents: { model: {} }');
    const model = await world.agent('model');
    const hand = {
      ...model,
      id: crypto.randomUUID(),
      agent_id: `agt_${'d'.repeat(14)}${crypto.randomUUID().slice(0, 6)}`,
      name: 'hand',
    };
    await putAgent(broker.store.db, { ...hand, origin: 'owner' });
    const key = parsePublicKey(PEM);
    if (!key.ok) throw new Error(key.error);
    await bindKey(broker.store.db, { organisationId: world.id, id: hand.id }, key, world.now);
    expect((await world.apply(await exportGovernance(broker, world.id, world.now))).plan.changes).toEqual([]);
  });

  it('leaves any state unchanged when it is exported and applied again', async () => {
    await fc.assert(
      fc.asyncProperty(documents, async (document) => {
        const world = await governed();
        await world.apply(JSON.stringify(document));
        const before = await world.present();
        const text = await exportGovernance(broker, world.id, world.now);
        world.now += 12_345;
        expect((await world.apply(text)).plan.changes).toEqual([]);
        expect(await world.present()).toEqual(before);
        expect(await exportGovernance(broker, world.id, world.now)).toBe(text);
      }),
      { numRuns: sized(5, 15) },
    );
  });
});

const names = fc.constantFrom('a', 'B.2', 'no', 'on', '1e3', 'constructor', 'x_y-z', '0');
const some = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 });
const SCOPES = ['crm:contacts.read', 'crm:contacts.write'];

const rules = (effects: string[]) =>
  fc.record(
    {
      effect: fc.constantFrom(...effects),
      platforms: fc.subarray(['crm', 'c*'], { minLength: 1 }),
      scopes: fc.subarray(['*.read', ...SCOPES], { minLength: 1 }),
      methods: fc.subarray(['GET', 'POST', 'DELETE'], { minLength: 1 }),
      endpoints: fc.subarray(['/**', '/a/*', '/contacts'], { minLength: 1 }),
      when: fc.constantFrom(
        "request.method == 'GET'",
        'has(request.body.a) && request.body.a == "# \'x\': \\n"',
        'true || false',
      ),
    },
    { requiredKeys: ['effect'] },
  );

const terms = fc.record(
  {
    scopes: fc.subarray(SCOPES, { minLength: 1 }),
    expires: fc.constantFrom('30d', '12h', '45m', '2031-02-03T04:05:06.7+08:00'),
    require_approval: fc.boolean(),
    recipients: fc.subarray(['@a.example', 'b@a.example']),
    repos: fc.subarray(['a/*', 'a/b']),
    allow_repo_creation: fc.boolean(),
    refs: fc.subarray(['agent/*', 'refs/tags/v*']),
    ref_changes: fc.subarray(['create', 'update', 'delete'] as const),
  },
  { requiredKeys: ['scopes'] },
);

/** Documents that can be applied: their names refer to existing entries. */
const documents = fc
  .record({
    platform: fc.constantFrom({}, { base_url: 'https://other.example' }, { headers: { A: '1' } }),
    hub: some(
      fc.constantFrom(
        {},
        { name: 'Hub' },
        { scopes: { 'codehost:contents.read': [], 'codehost:own.read': ['GET /own'] } },
      ),
    ),
    connections: fc.uniqueArray(names, { maxLength: 3 }),
    owners: fc.subarray(['bob@acme.example', 'cyd@acme.example']),
    policies: fc.dictionary(names, fc.array(rules(['allow', 'deny', 'require_approval']), { maxLength: 3 }), {
      maxKeys: 2,
    }),
    guardrails: fc.array(rules(['suspend', 'deny', 'require_approval']), { maxLength: 2 }),
    agents: fc.dictionary(
      names,
      fc.record({ pick: fc.nat(), key: fc.boolean(), grants: fc.array(terms, { maxLength: 3 }) }),
      { maxKeys: 3 },
    ),
    published: fc.boolean(),
    suspending: fc.constantFrom(false, { refusals: 3, within_seconds: 10 }),
    deciders: fc.constantFrom('default', 'approvers', 'agents_owner'),
    retention: fc.constantFrom(false, { reads_days: 31, calls_days: null, events_days: 400 }),
  })
  .map(
    ({
      platform,
      hub,
      connections,
      owners,
      policies,
      guardrails,
      agents,
      published,
      suspending,
      retention,
      deciders,
    }) => {
      const policyNames = ['default', ...Object.keys(policies)];
      const people = [ANN, ...owners];
      return {
        publish_identity_documents: published,
        auto_suspend: suspending,
        retention,
        passkey_deciders: deciders,
        owners: owners.map((email) => ({ email, role: 'approver' })),
        platforms: {
          crm: {
            kind: 'rest',
            base_url: 'https://crm.example',
            auth: { type: 'bearer' },
            scopes: { [SCOPES[0]!]: ['GET /contacts'], [SCOPES[1]!]: ['POST /contacts'] },
            ...platform,
          },
          ...(hub && { codehost: { use: 'github', ...hub } }),
        },
        connections: Object.fromEntries(
          connections.map((name, i) => [
            name,
            { platform: 'crm', secret: { env: 'CRM_TOKEN' }, ...(i === 1 && { default: true }) },
          ]),
        ),
        policies: Object.fromEntries(Object.entries(policies).map(([name, list]) => [name, { rules: list }])),
        guardrails: guardrails.map((rule, i) => ({ name: `guardrail ${i}`, ...rule })),
        agents: Object.fromEntries(
          Object.entries(agents).map(([name, { pick, key, grants }], i) => [
            name,
            {
              owner: people[pick % people.length],
              policy: policyNames[pick % policyNames.length],
              ...(key && { public_key: { pem: PEMS[i]! } }),
              grants: {
                ...(grants.length > 0 && {
                  crm: grants
                    .slice(0, connections.length + 1)
                    .map((one, i) => ({ ...one, ...(i > 0 && { connection: connections[i - 1] }) })),
                }),
              },
            },
          ]),
        ),
      };
    },
  );
