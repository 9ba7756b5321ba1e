import { describe, expect, it } from 'vitest';
import { governanceOf } from '../../broker/config-file/parse.ts';
import { formatProblem } from '../../broker/config-file/problems.ts';
import { applyFile } from '../../broker/config-plan/apply.ts';
import { exportGovernance } from '../../broker/config-plan/export.ts';
import { planGovernance, UnknownOrganisation } from '../../broker/config-plan/plan.ts';
import type { Present } from '../../broker/config-plan/present.ts';
import { hashToken } from '../../broker/crypto/one-time-token.ts';
import { parsePublicKey } from '../../broker/crypto/public-key.ts';
import { Secret } from '../../broker/crypto/secret.ts';
import { bindKey } from '../../broker/store/agent-keys.ts';
import { moveAgent, putAgent } from '../../broker/store/agents.ts';
import { findLiveAuthorisation, putMcpAuthorisation } from '../../broker/store/mcp-authorisations.ts';
import { useOneTimeToken } from '../../broker/store/one-time-tokens.ts';
import { putOwner, updateOrganisation } from '../../broker/store/organisations.ts';
import { revokeAgent } from '../../broker/store/revoke-agent.ts';
import type { Db } from '../../broker/store/store.ts';
import { postgresNote, STORES, testOnOne } from '../world/stores.ts';
import {
  ANN,
  applyGovernance,
  CRM,
  changedAfterReading,
  DAY,
  Governed,
  makeOrganisation,
  newPublicKey,
  openBroker,
  quote,
  read,
  titles,
} from './governance-world.ts';

const CONNECTED = `${CRM}connections:
  crm-main: { platform: crm, secret: { env: CRM_TOKEN } }
`;

const grantsOf = (present: Present) => [...present.grants.values()].flat();

/** Returns the agents section of a file. */
const agents = (...lines: string[]) => `agents:\n${lines.map((line) => `  ${line}\n`).join('')}`;
const READ = 'grants: { crm: { scopes: ["crm:contacts.read"] } }';

describe.each(STORES)(`applying governance on %s${postgresNote}`, async (kind) => {
  /** For tests that do not depend on the store's statements. */
  const onOne = testOnOne(kind);
  const broker = await openBroker(kind);
  const doomed = await openBroker(kind);
  const { db } = broker.store;
  const governed = async () => (await Governed.make(broker)).secret('env:CRM_TOKEN', 'CANARY-1');

  it('creates everything that a file says, and applying it again changes nothing', async () => {
    const world = await governed();
    const pem = newPublicKey();
    const name = `acme ${kind}`;
    const text = `organisation: ${name}
publish_identity_documents: true
owners:
  - { email: bob@acme.example, role: approver }
${CONNECTED}policies:
  careful: { rules: [{ effect: allow, methods: [GET] }] }
guardrails:
  - { name: no-deletes, effect: require_approval, methods: [DELETE] }
agents:
  triage:
    owner: bob@acme.example
    policy: careful
    public_key: { pem: ${quote(pem)} }
    grants:
      crm: { scopes: ["crm:contacts.read"], expires: 30d, recipients: ["@acme.example"], connection: crm-main }
  helper: {}
`;
    const { plan, bootstrapTokens } = await world.apply(text);
    expect(titles(plan.changes)).toEqual([
      `update organisation ${name}`,
      'create owner bob@acme.example',
      'create platform crm',
      'create policy careful',
      'create guardrails guardrails',
      'create connection crm-main',
      'create agent triage',
      'create grant triage on crm (crm-main)',
      'create agent helper',
    ]);
    expect(bootstrapTokens.map(({ agent }) => agent)).toEqual(['helper']);

    const present = await world.present();
    expect(present.organisation).toMatchObject({ name, publish_identity_documents: 1, guardrails_version: 1 });
    expect(present.owners.map(({ email, role, origin }) => [email, role, origin])).toEqual([
      [ANN, 'admin', 'first_start'],
      ['bob@acme.example', 'approver', 'governance'],
    ]);
    const triage = await world.agent('triage');
    expect(triage).toMatchObject({ status: 'active', agent_type: 'key', origin: 'governance' });
    expect(triage.agent_id).toMatch(/^agt_[a-z0-9]{20}$/);
    expect(triage.key_fingerprint).toBe((parsePublicKey(pem) as { fingerprint: string }).fingerprint);
    expect(triage.owner_id).toBe(present.owners[1]?.id);
    expect(triage.policy_id).toBe(present.policies.get('careful')?.id);
    const helper = await world.agent('helper');
    expect(helper).toMatchObject({ status: 'pending_bind', public_key_pem: null, owner_id: present.owners[0]?.id });
    expect(helper.policy_id).toBe(present.policies.get('default')?.id);
    expect(grantsOf(present)[0]).toMatchObject({
      agent_id: triage.id,
      connection_id: present.connections[0]?.id,
      constraints: '{"recipients":["@acme.example"]}',
      expires_at: world.now + 30 * DAY,
      expires_text: '30d',
      require_approval: 0,
    });

    world.now += DAY;
    const again = await world.apply(text);
    expect(again.plan.changes).toEqual([]);
    expect(again.bootstrapTokens).toEqual([]);
    expect(await world.present()).toEqual(present);
  });

  onOne('keeps secrets sealed, detects a changed one, and never shows one', async () => {
    const world = await governed();
    const first = await world.apply(CONNECTED);
    const [connection] = (await world.present()).connections;
    const place = { table: 'connections' as const, organisationId: world.id, rowId: connection!.id };
    expect(broker.vault.open(place, connection!.credential!).toString()).toBe('CANARY-1');
    expect(connection).toMatchObject({
      is_default: 1,
      secret_reference: 'env:CRM_TOKEN',
      revision: 1,
      status: 'active',
    });
    expect(Buffer.from(connection!.credential!).includes('CANARY')).toBe(false);

    world.secret('env:CRM_TOKEN', 'CANARY-2');
    const changed = await world.apply(CONNECTED);
    expect(changed.plan.changes).toEqual([
      { action: 'update', kind: 'connection', name: 'crm-main', details: ['secret: changed'] },
    ]);
    const [after] = (await world.present()).connections;
    expect(broker.vault.open(place, after!.credential!).toString()).toBe('CANARY-2');
    expect(after?.revision).toBe(2);
    expect((await world.apply(CONNECTED)).plan.changes).toEqual([]);
    expect(JSON.stringify([first, changed])).not.toContain('CANARY');
  });

  onOne('replaces a stored secret that cannot be opened, and says so', async () => {
    const world = await governed();
    await world.apply(CONNECTED);
    await db
      .updateTable('connections')
      .set({ credential: Buffer.alloc(200, 1) })
      .where('organisation_id', '=', world.id)
      .execute();
    const { plan } = await world.apply(CONNECTED);
    expect(plan.warnings.map(({ message }) => message)).toEqual([
      'the stored secret cannot be opened and is replaced by the one given here.',
    ]);
    expect((await world.apply(CONNECTED)).plan).toEqual({ changes: [], warnings: [] });
  });

  onOne('keeps the stored secret of a connection when the file names none', async () => {
    const world = await governed();
    await world.apply(CONNECTED);
    const before = await world.present();
    const text = CONNECTED.replace(', secret: { env: CRM_TOKEN }', '');
    expect((await world.apply(text)).plan).toEqual({ changes: [], warnings: [] });
    expect(await world.present()).toEqual(before);
    const fresh = await world.plan(`${text}  other: { platform: crm, default: true }\n`);
    expect(fresh.warnings[0]?.message).toBe('has no secret yet, so calls on it are answered platform_not_connected.');
  });

  onOne('warns of a rule that needs more people than may decide, counting those of the file', async () => {
    const world = await governed();
    const file = (owners: string) => `${owners}guardrails:
  - { name: payouts, effect: require_approval, methods: [POST], approvers: 3 }
policies:
  default: { rules: [{ effect: require_approval, approvers: 1 }] }
`;
    const warnings = async (owners = '') => (await world.plan(file(owners))).warnings;
    const has = (await world.present()).owners.filter(({ role }) => role !== 'viewer').length;
    expect(await warnings()).toEqual([
      {
        file: 'governance.yaml',
        path: 'guardrails[0].approvers',
        line: expect.any(Number),
        column: expect.any(Number),
        message: `3 people have to approve, and the organisation has ${has} who may decide: such calls can only be denied, or expire.`,
      },
    ]);
    const owner = (name: string, role: string) => `  - { email: ${name}@acme.example, role: ${role} }\n`;
    expect(await warnings(`owners:\n${owner('a', 'admin')}${owner('c', 'viewer')}`)).toHaveLength(1);
    expect(await warnings(`owners:\n${owner('a', 'admin')}${owner('c', 'approver')}`)).toEqual([]);
  });

  onOne('warns of a connection without a secret, but not where people give their own tokens', async () => {
    const world = await governed();
    const shared = (perPerson: string) => `platforms:
  docs:
    kind: rest
    base_url: https://docs.example/api
    auth: { type: oauth2, issuer: "https://id.example", client_id: web, scopes: [api] }
    scopes: { "docs:read": ["GET /**"] }${perPerson}
connections: { docs: { platform: docs } }
`;
    const warnings = async (text: string) => (await world.plan(text)).warnings.map(({ message }) => message);
    expect(await warnings(shared(''))).toEqual([expect.stringMatching(/^is not connected yet/)]);
    const perPerson = shared('\n    per_person: { enabled: true, asserted: [slack] }');
    expect(await warnings(perPerson)).toEqual([]);
    const created = async (text: string) =>
      (await world.plan(text)).changes.find(({ name }) => name === 'docs')?.details.at(-1);
    expect([await created(shared('')), await created(perPerson)]).toEqual(['scopes: 1', 'per_person: enabled']);
  });

  onOne('refuses a file whose secrets are missing', async () => {
    const world = await Governed.make(broker);
    expect(await world.refusal(CONNECTED)).toEqual([
      'governance.yaml:11:30: connections.crm-main.secret: the value of env:CRM_TOKEN was not given with the file.',
    ]);
    const short = await world.secret('env:CRM_TOKEN', 'x234567').refusal(CONNECTED);
    expect(short[0]).toContain('the value of env:CRM_TOKEN has fewer than 8 characters');
    expect(short.join()).not.toContain('x234567');
    const basic = CONNECTED.replace('auth: { type: bearer }', 'auth: { type: basic }');
    expect((await world.secret('env:CRM_TOKEN', 'somebody:x234567').refusal(basic))[0]).toContain(
      'the value of env:CRM_TOKEN has a password of fewer than 8 characters',
    );
    expect((await world.secret('env:CRM_TOKEN', '').refusal(CONNECTED))[0]).toContain(
      'the value of env:CRM_TOKEN is empty.',
    );
    expect((await world.present()).platforms.size).toBe(0);
  });

  onOne('does not store the reference of a secret that the program itself gave', async () => {
    const world = await Governed.make(broker);
    const manifest = { kind: 'rest', base_url: 'http://127.0.0.1:1', auth: { type: 'bearer' }, scopes: {} };
    const parsed = governanceOf(
      { platforms: { box: manifest }, connections: { box: { platform: 'box', secret: { env: 'BOX' } } } },
      'the sandbox',
    );
    if (!parsed.ok) throw new Error('not read');
    const values = new Map([['env:BOX', new Secret('CANARY-1')]]);
    for (const changes of [2, 0]) {
      const applied = await applyGovernance(broker, world.id, parsed.governance, values, world.now);
      expect(applied.ok && applied.plan.changes.length).toBe(changes);
    }
    expect((await world.present()).connections[0]).toMatchObject({ secret_reference: null, label: 'box' });
  });

  onOne('changes no section that the file does not have, and treats present sections as complete', async () => {
    const world = await governed();
    await world.apply(
      `${CONNECTED}policies: { a: { rules: [] }, b: { rules: [] } }\nguardrails: [{ name: g, effect: deny, methods: [PUT] }]\n${agents(`t: { policy: a, ${READ} }`)}`,
    );
    const before = await world.present();
    expect((await world.apply('publish_identity_documents: false')).plan.changes).toEqual([]);
    expect(await world.present()).toEqual(before);

    expect(titles((await world.apply('policies: { a: { rules: [] } }')).plan.changes)).toEqual(['delete policy b']);
    expect(titles((await world.apply('guardrails: []')).plan.changes)).toEqual(['delete guardrails guardrails']);
    const without = await world.apply('platforms: {}\nconnections: {}\nagents: { t: { policy: a } }');
    expect(titles(without.plan.changes)).toEqual([
      'delete grant t on crm',
      'delete connection crm-main',
      'delete platform crm',
    ]);
  });

  onOne('shows each changed rule completely, and only a new order as one', async () => {
    const world = await governed();
    const details = async (rules: string) => (await world.apply(`guardrails: [${rules}]`)).plan.changes[0]?.details;
    const mask = (members: string) => `{ name: m, effect: mask, mask: { members: [${members}] } }`;
    const later = (when: string) =>
      `{ name: l, effect: deny, after: { scopes: ["a:a", "a:b", "a:c", "a:d", "a:e"], when: "${when}", within: 1d } }`;
    await details(`${mask('a, b, c, d, email')}, ${later("request.endpoint == '/a b'")}`);
    expect(await details(`${mask('a, b, c, d, phone')}, ${later("request.endpoint == '/a b'")}`)).toEqual([
      '− m: mask: a, b, c, d, email',
      '+ m: mask: a, b, c, d, phone',
    ]);
    expect(await details(`${mask('a, b, c, d, phone')}, ${later("request.endpoint == '/a  b'")}`)).toHaveLength(2);
    expect(await details(`${later("request.endpoint == '/a  b'")}, ${mask('a, b, c, d, phone')}`)).toEqual([
      'the order of the rules, which only changes their numbers',
    ]);
    const made = await world.apply('policies: { p: { rules: [] } }');
    expect(made.plan.changes.find(({ name }) => name === 'p')?.details).toEqual(['no rules: every call is denied']);
  });

  it('writes a new version of a policy only when its rules differ', async () => {
    const world = await governed();
    const policy = (rules: string) => `policies:\n  p: { rules: [${rules}] }`;
    const version = async () =>
      (
        await db
          .selectFrom('policies')
          .select('version')
          .where('organisation_id', '=', world.id)
          .where('name', '=', 'p')
          .executeTakeFirst()
      )?.version;
    await world.apply(policy('{ effect: allow, methods: [GET] }'));
    expect(await version()).toBe(1);
    await world.apply(policy('{ methods: [GET], effect: "allow" }'));
    expect(await version()).toBe(1);
    const { plan } = await world.apply(
      policy('{ effect: allow, methods: [GET] }, { name: no, effect: deny, endpoints: ["/admin/**"] }'),
    );
    expect(plan.changes[0]?.details).toEqual(['+ no: deny: endpoints /admin/**']);
    expect(await version()).toBe(2);
  });

  onOne('keeps the policy default, and restores its built-in rules', async () => {
    const world = await governed();
    expect(titles((await world.apply('policies: { default: { rules: [] } }')).plan.changes)).toEqual([
      'update policy default',
    ]);
    expect((await world.apply('agents: {}')).plan.changes).toEqual([]);
    expect(titles((await world.apply('policies: {}')).plan.changes)).toEqual(['update policy default']);
    expect((await world.apply('policies: {}')).plan.changes).toEqual([]);
  });

  onOne('updates owners, and removes only those that a file created', async () => {
    const world = await governed();
    await putOwner(db, {
      organisation_id: world.id,
      id: 'added',
      email: 'eve@acme.example',
      role: 'viewer',
      origin: 'added',
      created_at: 5,
    });
    await world.apply('owners: [{ email: bob@acme.example, role: viewer }, { email: cyd@acme.example, role: viewer }]');
    const { plan } = await world.apply('owners: [{ email: BOB@acme.example, role: approver }]');
    expect(plan.changes).toEqual([
      { action: 'update', kind: 'owner', name: 'bob@acme.example', details: ['role: viewer → approver'] },
      { action: 'delete', kind: 'owner', name: 'cyd@acme.example', details: [] },
    ]);
    expect((await world.present()).owners.map(({ email }) => email).sort()).toEqual([
      ANN,
      'bob@acme.example',
      'eve@acme.example',
    ]);
    expect(await world.refusal(`owners: [{ email: ${ANN}, role: viewer }]`)).toEqual([
      'governance.yaml:1:1: owners: no admin would be left, and then nobody could change anything; give one owner the role admin.',
    ]);
  });

  onOne('sets the role of an owner by groups as the file says, even when it is the same', async () => {
    const world = await governed();
    const bob = { email: 'bob@acme.example', role: 'approver', origin: 'added', role_by_groups: 1 } as const;
    await putOwner(db, { organisation_id: world.id, id: crypto.randomUUID(), created_at: world.now, ...bob });
    const text = 'owners:\n  - { email: bob@acme.example, role: approver }\n';
    expect((await world.apply(text)).plan.changes).toEqual([
      {
        action: 'update',
        kind: 'owner',
        name: 'bob@acme.example',
        details: ['role: approver, by groups → approver'],
      },
    ]);
    const [, owner] = (await world.present()).owners;
    expect(owner).toMatchObject({ ...bob, role_by_groups: 0 });
    expect((await world.apply(text)).plan.changes).toEqual([]);
  });

  onOne('creates usable tokens for new agents when the file removes the admin who applies it', async () => {
    const world = await governed();
    await world.apply('owners:\n  - { email: bob@acme.example, role: admin }\n');
    const bob = (await world.present()).owners.find(({ email }) => email === 'bob@acme.example')!;
    const options = { madeBy: bob.id };
    const text = `owners: []\n${agents('t: {}')}`;
    const applied = await applyGovernance(broker, world.id, read(text), world.values, world.now, options);
    const [token] = applied.ok ? applied.bootstrapTokens : [];
    expect((await world.present()).owners.map(({ email }) => email)).toEqual([ANN]);
    const hash = hashToken(token!.token.reveal(), 'bootstrap')!;
    expect(await useOneTimeToken(db, 'bootstrap', hash, world.now)).toBeDefined();
  });

  onOne('refuses to remove an owner of agents, with an explanation and before any change', async () => {
    const world = await governed();
    const bob = 'owners: [{ email: bob@acme.example, role: approver }]\n';
    await world.apply(`${bob}${agents('t: { owner: bob@acme.example }')}`);
    const before = await world.present();
    expect(await world.refusal('publish_identity_documents: true\nowners: []')).toEqual([
      'governance.yaml:2:1: owners: "bob@acme.example" is no longer listed but answers for the agents "t"; give them another owner, or list the owner.',
    ]);
    expect(await world.present()).toEqual(before);

    // The owner who allowed an MCP client can be removed, too.
    const { id: agent_id, organisation_id, owner_id } = await world.agent('t');
    const client = { client_id: 'c', client_name: 'c', redirect_host: 'localhost', scope: 'mcp:read' };
    const times = { created_at: world.now, expires_at: world.now + DAY };
    await putMcpAuthorisation(broker.store.db, {
      id: agent_id,
      organisation_id,
      agent_id,
      owner_id,
      ...client,
      ...times,
    });
    const { plan } = await world.apply('owners: []\nagents: {}');
    expect(plan.changes.map(({ details }) => details)).toEqual([
      ['status: pending_bind → revoked'],
      [`owner of the revoked agent t: bob@acme.example → ${ANN}`],
    ]);
    expect((await world.present()).owners).toHaveLength(1);
  });

  onOne('refuses an unknown owner, policy, connection or platform, at its line', async () => {
    const world = await governed();
    await world.apply(`${CONNECTED}policies: { careful: { rules: [] } }`);
    const text = agents(
      't:',
      '  owner: bob@acme.example',
      '  policy: carefull',
      '  grants:',
      '    crm: { scopes: ["crm:contacts.raed"], connection: crm-mian }',
      '    crn: { scopes: [x] }',
    );
    expect(await world.refusal(text)).toEqual([
      `governance.yaml:3:12: agents.t.owner: there is no owner "bob@acme.example". There are: "${ANN}".`,
      'governance.yaml:4:13: agents.t.policy: there is no policy "carefull". Did you mean "careful"? There are: "default" and "careful".',
      'governance.yaml:6:23: agents.t.grants.crm.scopes[0]: the platform "crm" has no scope "crm:contacts.raed". Did you mean "crm:contacts.read"? It has: "crm:contacts.read" and "crm:contacts.write".',
      'governance.yaml:6:57: agents.t.grants.crm.connection: there is no connection "crm-mian". Did you mean "crm-main"? Those to "crm" are: "crm-main".',
      'governance.yaml:7:7: agents.t.grants.crn: there is no platform "crn". Did you mean "crm"? There are: "crm".',
    ]);
  });

  onOne('refuses to remove what is used by sections that the file does not have', async () => {
    const world = await governed();
    await world.apply(
      `${CONNECTED}policies: { careful: { rules: [] } }\n${agents('t: { policy: careful, grants: { crm: { scopes: ["crm:contacts.read"], connection: crm-main } } }')}`,
    );
    const before = await world.present();
    expect(await world.refusal('platforms: {}\nconnections: {}\npolicies: {}')).toEqual([
      'governance.yaml:1:1: platforms: "crm" is no longer listed but is granted to "t"; remove the grants first.',
      'governance.yaml:2:1: connections: "crm-main" is no longer listed but grants of "t" use it; change them first.',
      'governance.yaml:3:1: policies: "careful" is no longer listed but the agents "t" use it; give them another policy first.',
    ]);
    expect(await world.refusal('platforms: {}\nagents: {}')).toEqual([
      'governance.yaml:1:1: platforms: "crm" is no longer listed but has the connections "crm-main"; remove them first.',
    ]);
    expect(await world.present()).toEqual(before);
    const all = await world.apply('platforms: {}\nconnections: {}\npolicies: {}\nagents: {}');
    expect(titles(all.plan.changes)).toEqual([
      'delete grant t on crm (crm-main)',
      'delete agent t',
      'delete connection crm-main',
      'delete platform crm',
      'delete policy careful',
    ]);
  });

  onOne('refuses to move a connection to another platform when grants outside of the file use it', async () => {
    const world = await governed();
    const platforms = `${CRM}  other:
    kind: rest
    base_url: https://other.example
    auth: { type: bearer }
    scopes: { "other:read": ["GET /**"] }
`;
    const connections = (platform: string) => `connections:
  main: { platform: ${platform}, secret: { env: CRM_TOKEN } }
`;
    const grant = 'grants: { crm: { scopes: ["crm:contacts.read"], connection: main } }';
    await world.apply(`${platforms}${connections('crm')}${agents(`t: { ${grant} }`)}`);
    expect(await world.refusal(connections('other'))).toEqual([
      'governance.yaml:2:21: connections.main.platform: is one to "crm", and grants of "t" use it; change them first.',
    ]);
    await world.apply(`${connections('other')}${agents('t: {}')}`);
    expect((await world.plan(await exportGovernance(broker, world.id, world.now))).changes).toEqual([]);
  });

  it('revokes an agent that the file leaves out, and restores it when it is named again', async () => {
    const world = await governed();
    const pem = newPublicKey();
    const text = `${CRM}${agents(`t: { public_key: { pem: ${quote(pem)} }, ${READ} }`, 'u: {}')}`;
    const first = await world.apply(text);
    const [token] = first.bootstrapTokens;
    const made = await world.agent('t');
    await world.apply(`${CRM}agents: {}`);
    expect(await world.agent('t')).toMatchObject({
      id: made.id,
      status: 'revoked',
      status_cause: 'owner_manual',
      status_detail: 'Removed from the governance file.',
    });
    expect(grantsOf(await world.present())).toEqual([]);
    expect(
      await useOneTimeToken(db, 'bootstrap', hashToken(token!.token.reveal(), 'bootstrap')!, world.now),
    ).toBeUndefined();
    expect((await world.apply(`${CRM}agents: {}`)).plan.changes).toEqual([]);

    const back = await world.apply(text);
    expect(back.plan.changes.map(({ kind, name, details }) => [kind, name, details])).toEqual([
      ['agent', 't', ['status: revoked → active']],
      ['grant', 't on crm', ['scopes: + crm:contacts.read']],
      ['agent', 'u', ['status: revoked → pending_bind']],
    ]);
    expect(await world.agent('t')).toMatchObject({
      id: made.id,
      status: 'active',
      status_cause: null,
      status_detail: null,
    });
    expect(back.bootstrapTokens.map(({ agent }) => agent)).toEqual(['u']);
    expect((await world.apply(text)).plan.changes).toEqual([]);
  });

  onOne('does not resume an agent that was suspended when it is left out and named again', async () => {
    const world = await governed();
    const text = agents(`t: { public_key: { pem: ${quote(newPublicKey())} } }`, 'u: {}');
    await world.apply(text);
    const { id } = await world.agent('t');
    const move = { from: ['active'], to: 'suspended', cause: 'anomaly_auto_suspend', detail: null } as const;
    await moveAgent(db, { organisationId: world.id, id }, move, world.now);
    const removed = await world.apply('agents: {}');
    expect(removed.plan.changes.flatMap(({ details }) => details).sort()).toEqual([
      'status: pending_bind → revoked',
      'status: suspended → revoked',
    ]);
    expect((await world.apply('agents: {}')).plan.changes).toEqual([]);
    const back = await world.apply(text);
    expect(back.plan.changes.map(({ name, details }) => [name, details])).toEqual([
      ['t', ['status: revoked → suspended']],
      ['u', ['status: revoked → pending_bind']],
    ]);
    expect(await world.agent('t')).toMatchObject({
      status: 'suspended',
      status_cause: 'owner_manual',
      status_detail: 'It was suspended when the governance file left it out.',
    });
    expect((await world.apply(text)).plan.changes).toEqual([]);
  });

  onOne('restores an MCP client’s agent, without its former authorisations', async () => {
    const world = await governed();
    await world.apply(agents('t: {}'));
    const { id, owner_id } = await world.agent('t');
    await db
      .updateTable('agents')
      .set({ agent_type: 'mcp_client', status: 'active' })
      .where('id', '=', id)
      .where('organisation_id', '=', world.id)
      .execute();
    const authorisation = crypto.randomUUID();
    await putMcpAuthorisation(db, {
      organisation_id: world.id,
      id: authorisation,
      agent_id: id,
      owner_id,
      client_id: 'client',
      client_name: 'client',
      redirect_host: 'client.example',
      scope: 'mcp:read',
      created_at: world.now,
      expires_at: world.now + DAY,
    });
    expect(await findLiveAuthorisation(db, authorisation, world.now)).toBeDefined();
    await world.apply('agents: {}');
    const back = await world.apply(agents('t: {}'));
    expect([back.plan.changes[0]?.details, back.bootstrapTokens]).toEqual([['status: revoked → active'], []]);
    expect(await world.agent('t')).toMatchObject({ id, status: 'active', agent_type: 'mcp_client' });
    expect(await findLiveAuthorisation(db, authorisation, world.now)).toBeUndefined();
    expect((await world.apply(agents('t: {}'))).plan.changes).toEqual([]);
  });

  onOne('restores no agent that a person revoked, and resumes no suspended one', async () => {
    const world = await governed();
    const text = agents('t: {}', 'u: {}');
    await world.apply(text);
    for (const [name, to] of [
      ['t', 'revoked'],
      ['u', 'suspended'],
    ] as const) {
      const { id } = await world.agent(name);
      const move = { from: ['pending_bind'] as const, to, cause: 'owner_manual' as const, detail: null };
      await moveAgent(db, { organisationId: world.id, id }, move, world.now);
    }
    const { plan } = await world.apply(text);
    expect(plan.changes).toEqual([]);
    expect(plan.warnings.map(({ path, message }) => `${path} ${message}`)).toEqual([
      'agents.t was revoked permanently: a governance file cannot undo that. For a new agent, use another name.',
    ]);
    expect((await world.agent('t')).status).toBe('revoked');
    expect((await world.agent('u')).status).toBe('suspended');
    expect(titles((await world.apply('agents: {}')).plan.changes)).toEqual(['delete agent u']);
  });

  onOne('keeps agents that were created by hand, until the file names them', async () => {
    const world = await governed();
    await world.apply(agents('model: {}'));
    const model = await world.agent('model');
    await putAgent(db, {
      ...model,
      id: crypto.randomUUID(),
      agent_id: `agt_${'h'.repeat(14)}${Date.now().toString(36).slice(-6)}`,
      name: 'by hand',
      origin: 'owner',
    });
    expect((await world.apply('agents: { model: {} }')).plan.changes).toEqual([]);
    const { plan } = await world.apply('agents: { model: {}, by hand: {} }');
    expect(plan.changes).toEqual([]);
    expect(plan.warnings.map(({ message }) => message)).toEqual([
      'was not created by a governance file. From now on this file manages it, and omitting it revokes it.',
    ]);
    expect((await world.agent('by hand')).origin).toBe('governance');
    expect((await world.apply('agents: { model: {}, by hand: {} }')).plan).toEqual({ changes: [], warnings: [] });
    expect(titles((await world.apply('agents: { model: {} }')).plan.changes)).toEqual(['delete agent by hand']);
  });

  onOne('reports a problem when two agents have the same name', async () => {
    const world = await governed();
    await world.apply(agents('t: {}'));
    const twin = { ...(await world.agent('t')), origin: 'registration' as const };
    const id = (letter: string) => ({
      id: crypto.randomUUID(),
      agent_id: `agt_${letter.repeat(14)}${Date.now().toString(36).slice(-6)}`,
    });
    await putAgent(db, { ...twin, ...id('q') });
    expect(await world.refusal(agents('t: {}', 'new: {}'))).toEqual([
      'governance.yaml:2:3: agents.t: there are 2 agents of this name; revoke all but one.',
    ]);
  });

  it('binds a key to an agent that waited for one, ends its token, and replaces a key', async () => {
    const world = await governed();
    const { bootstrapTokens } = await world.apply(agents('t: {}'));
    const hash = hashToken(bootstrapTokens[0]!.token.reveal(), 'bootstrap')!;
    const [first, second] = [newPublicKey(), newPublicKey()];
    const text = (pem: string) => agents(`t: { public_key: { pem: ${quote(pem)} } }`);
    expect(titles((await world.apply(text(first))).plan.changes)).toEqual(['create key t']);
    expect((await world.agent('t')).status).toBe('active');
    expect(await useOneTimeToken(db, 'bootstrap', hash, world.now)).toBeUndefined();
    expect((await world.apply(text(first))).plan.changes).toEqual([]);
    expect(titles((await world.apply(text(second))).plan.changes)).toEqual(['update key t']);
    expect((await world.apply(agents('t: {}'))).plan.changes).toEqual([]);
  });

  it('returns a bootstrap token that can be used once, within a day', async () => {
    const world = await governed();
    const { bootstrapTokens } = await world.apply(agents('t: {}', 'u: {}'));
    const agent = await world.agent('t');
    expect(bootstrapTokens[0]).toMatchObject({ agent: 't', agentId: agent.agent_id, expiresAt: world.now + DAY });
    const [t, u] = bootstrapTokens.map(({ token }) => hashToken(token.reveal(), 'bootstrap')!);
    expect((await useOneTimeToken(db, 'bootstrap', t!, world.now + DAY - 1))?.subject).toBe(agent.id);
    expect(await useOneTimeToken(db, 'bootstrap', u!, world.now + DAY)).toBeUndefined();
    expect(JSON.stringify(bootstrapTokens)).not.toContain('abt_');
  });

  onOne('reads public keys from the values given with the file, and refuses invalid ones', async () => {
    const world = await governed();
    const text = agents('t: { public_key: { file: t.pem } }');
    expect(await world.refusal(text)).toEqual([
      'governance.yaml:2:8: agents.t.public_key: the content of this file was not given with the governance file.',
    ]);
    world.secret('file:t.pem', 'hello');
    expect((await world.refusal(text))[0]).toContain(
      'A public key in PEM form (-----BEGIN PUBLIC KEY-----) is required.',
    );
    world.secret('file:t.pem', newPublicKey());
    expect(titles((await world.apply(text)).plan.changes)).toEqual(['create agent t']);
    expect((await world.agent('t')).status).toBe('active');
  });

  it('changes the terms of a grant in place, and shows old and new values', async () => {
    const world = await governed();
    const connections = `${CONNECTED}  crm-two: { platform: crm, secret: { env: CRM_TOKEN } }\n`.replace(
      '{ env: CRM_TOKEN } }',
      '{ env: CRM_TOKEN }, default: true }',
    );
    const terms = (text: string) => `${connections}${agents(`t: { grants: { crm: ${text} } }`)}`;
    await world.apply(terms('{ scopes: ["crm:contacts.read"], expires: 30d }'));
    const [before] = grantsOf(await world.present());
    world.now += DAY;
    const { plan } = await world.apply(
      terms(
        '{ scopes: ["crm:contacts.write"], expires: 12h, require_approval: true, connection: crm-two, repos: ["acme/*"] }',
      ),
    );
    expect(plan.changes).toEqual([
      {
        action: 'update',
        kind: 'grant',
        name: 't on crm (crm-two)',
        details: [
          'scopes: − crm:contacts.read, + crm:contacts.write',
          'connection: the default → crm-two',
          'require_approval: false → true',
          'repos: all → acme/*',
          'expires: 30d (2026-07-01T12:00:00.000Z) → 12h (2026-06-03T00:00:00.000Z)',
        ],
      },
    ]);
    const [after] = grantsOf(await world.present());
    expect(after).toMatchObject({ id: before?.id, created_at: before?.created_at, expires_at: world.now + DAY / 2 });

    const wider = await world.plan(terms('{ scopes: ["crm:contacts.write"], connection: crm-two, repos: [] }'));
    expect(wider.changes[0]?.details).toContain('repos: acme/* → no repository');
    const widest = await world.plan(terms('{ scopes: ["crm:contacts.write"], connection: crm-two }'));
    expect(widest.changes[0]?.details).toContain('repos: acme/* → all');

    const two = await world.apply(
      terms(
        '[{ scopes: ["crm:contacts.read"] }, { scopes: ["crm:contacts.write"], expires: 12h, require_approval: true, connection: crm-two, repos: ["acme/*"] }]',
      ),
    );
    expect(titles(two.plan.changes)).toEqual(['create grant t on crm']);
    world.now += DAY;
    const expired = await world.plan(
      terms(
        '[{ scopes: ["crm:contacts.read"] }, { scopes: ["crm:contacts.write"], expires: 12h, require_approval: true, connection: crm-two, repos: ["acme/*"] }]',
      ),
    );
    expect(expired.changes).toEqual([]);
    expect(expired.warnings.map(({ message }) => message)).toContain(
      'ended on 2026-06-03T00:00:00.000Z; write another span or moment to renew it.',
    );
  });

  onOne('distinguishes an entry called none from a missing one', async () => {
    const world = await governed();
    const file = (terms: string, labels: string) =>
      `${CRM}${agents(`t: { labels: [${labels}], grants: { crm: { scopes: ["crm:contacts.read"]${terms} } } }`)}`;
    await world.apply(file('', ''));
    const { plan } = await world.apply(file(', refs: [none]', 'none'));
    expect(plan.changes.map(({ details }) => details)).toEqual([['labels: null → ["none"]'], ['refs: all → none']]);
    expect((await world.agent('t')).labels).toBe('["none"]');
    const [grant] = grantsOf(await world.present());
    expect(JSON.parse(grant!.constraints)).toEqual({ refs: ['none'] });
    expect((await world.apply(file('', ''))).plan.changes.map(({ details }) => details)).toEqual([
      ['labels: ["none"] → null'],
      ['refs: none → all'],
    ]);
    expect((await world.apply(file(', refs: [all]', ''))).plan.changes.map(({ details }) => details)).toEqual([
      ['refs: "all" → ["all"]'],
    ]);
  });

  onOne('shows the changes of a platform, and continues its version numbers', async () => {
    const world = await governed();
    await world.apply(CRM);
    const { plan } = await world.apply(
      CRM.replace('https://crm', 'https://crm2')
        .replace(', "PATCH /contacts/*"', '')
        .replace('crm:contacts.read', 'crm:contacts.list'),
    );
    expect(plan.changes[0]?.details).toEqual([
      'base_url: https://crm.example/api → https://crm2.example/api',
      'scope crm:contacts.read: removed',
      'scope crm:contacts.write: − PATCH /contacts/*',
      'scope crm:contacts.list: added (GET /contacts, GET /contacts/*)',
    ]);
    await world.apply(agents('t: { grants: { crm: { scopes: ["crm:contacts.list"] } } }'));
    const lost = await world.apply(CRM);
    expect(lost.plan.warnings.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'platforms.crm.scopes: "t" is granted "crm:contacts.list", which this platform does not have: these scopes allow nothing.',
    ]);
    await world.apply('platforms: {}\nagents: {}');
    await world.apply(CRM);
    const row = await db
      .selectFrom('platforms')
      .select('version')
      .where('organisation_id', '=', world.id)
      .executeTakeFirst();
    expect(row?.version).toBe(4);
  });

  onOne('shows a changed sentence, and only the number when there are many', async () => {
    const world = await governed();
    await world.apply(CRM);
    const contact = `${CRM}    sentences: { "POST /contacts": "create a contact" }\n`;
    const { plan } = await world.apply(contact);
    expect(plan.changes[0]?.details).toEqual(['sentence POST /contacts: none → create a contact']);
    const names = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `"GET /contacts/${name}": "read ${name}"`);
    const many = await world.apply(`${CRM}    sentences: { ${names.join(', ')} }\n`);
    expect(many.plan.changes[0]?.details).toEqual(['sentences: 7 changed']);
  });

  it('sets trusted issuers of assertions, keeps them when a file does not name them, and exports them', async () => {
    const world = await governed();
    const issuers = 'caller_issuers:\n  - { issuer: "https://id.example", audience: agents, claim: oid }';
    const { plan } = await world.apply(issuers);
    expect(plan.changes.flatMap(({ details }) => details)).toEqual([
      'caller_issuers: + https://id.example {"audience":"agents","claim":"oid"}',
    ]);
    for (const text of [issuers, 'guardrails: []']) expect((await world.apply(text)).plan.changes).toEqual([]);
    expect(await exportGovernance(broker, world.id, world.now)).toContain(
      'caller_issuers:\n  - issuer: https://id.example\n    audience: agents\n    claim: oid\n',
    );
    expect((await world.apply('caller_issuers: []')).plan.changes).toHaveLength(1);
  });

  onOne('refuses the name of another organisation, and an unknown organisation id', async () => {
    const world = await governed();
    await makeOrganisation(broker, `taken ${kind}`, ANN, world.now);
    expect(await world.refusal(`organisation: taken ${kind}`)).toEqual([
      `governance.yaml:1:15: organisation: another organisation on this broker is called "taken ${kind}".`,
    ]);
    await expect(makeOrganisation(broker, `taken ${kind}`, ANN, 1)).rejects.toThrow('There is an organisation');
    const nobody = 'c4b1f7f0-0000-4000-8000-000000000000';
    await expect(planGovernance(broker, nobody, read('agents: {}'), new Map(), 1)).rejects.toThrow(UnknownOrganisation);
    await expect(applyGovernance(broker, nobody, read('agents: {}'), new Map(), 1)).rejects.toThrow(
      UnknownOrganisation,
    );
  });

  it('changes only the organisation of the file', async () => {
    const [one, two] = [await governed(), await governed()];
    await one.apply(`${CONNECTED}${agents(`t: { ${READ} }`)}`);
    const before = await one.present();
    await two.apply(`${CONNECTED}${agents(`t: { ${READ} }`)}`);
    await two.apply('platforms: {}\nconnections: {}\nagents: {}');
    expect(await one.present()).toEqual(before);
  });

  it('changes nothing when one change fails', async () => {
    const world = await governed();
    await world.apply(CRM);
    const before = await world.present();
    const text = `${CONNECTED}policies: { p: { rules: [] } }\nagents: { t: { policy: p } }`;
    const vault = {
      ...broker.vault,
      seal: () => {
        throw new Error('no key');
      },
    };
    const failing = applyGovernance({ ...broker, vault }, world.id, read(text), world.values, world.now);
    await expect(failing).rejects.toThrow('no key');
    expect(await world.present()).toEqual(before);
    expect(titles((await world.apply(text)).plan.changes)).toContain('create agent t');
  });

  it('changes nothing when the last write fails', async () => {
    const world = (await Governed.make(doomed)).secret('env:CRM_TOKEN', 'CANARY-1');
    const before = await world.present();
    // This table is first used when the bootstrap token of the new agent is written.
    await doomed.store.db.schema.dropTable('one_time_tokens').execute();
    const text = `organisation: doomed\n${CONNECTED}policies: { p: { rules: [] } }\nagents: { t: { policy: p } }`;
    await expect(applyGovernance(doomed, world.id, read(text), world.values, world.now)).rejects.toThrow(
      'one_time_tokens',
    );
    expect(await world.present()).toEqual(before);
  });

  it('serialises concurrent applies', async () => {
    const world = await governed();
    const text = `${CONNECTED}${agents(`t: { ${READ} }`)}`;
    const applied = await Promise.all(
      Array.from({ length: 4 }, () => applyGovernance(broker, world.id, read(text), world.values, world.now)),
    );
    const counts = applied.map((result) => (result.ok ? result.plan.changes.length : -1)).sort();
    expect(counts).toEqual([0, 0, 0, 4]);
    expect((await world.present()).agents).toHaveLength(1);
  });

  describe('with concurrent changes of governance', () => {
    const two = agents(`t: { ${READ} }`, `u: { ${READ} }`);
    /** Applies a file; before each transaction one of the changes is made. Returns the number of transactions. */
    async function overtaken(world: Governed, text: string, changes: readonly (() => Promise<unknown>)[]) {
      let transactions = 0;
      const { store, vault } = broker;
      const { id: organisationId, values: resolved, now } = world;
      const applying = { store, vault, organisationId, governance: read(text), resolved, clock: () => now };
      const result = await applyFile(applying, async (make) => {
        await changes[transactions++]?.();
        return await store.db.transaction().execute(make);
      });
      if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
      return { transactions, changes: titles(result.plan.changes) };
    }
    const rename = (world: Governed, name: string) => () => updateOrganisation(broker.store.db, world.id, { name });

    it('plans again after a concurrent change, and executes nothing of the outdated plan', async () => {
      const world = await governed();
      await world.apply(`${CONNECTED}${two}`);
      const revoke = async () => {
        const [t] = (await world.present()).agents.filter(({ name }) => name === 't');
        const ending = { from: ['active', 'pending_bind'], cause: 'owner_manual', detail: 'by hand' } as const;
        await broker.store.db.transaction().execute((db) => revokeAgent(db, t!, ending, world.now));
      };
      const { transactions, changes } = await overtaken(world, `${CONNECTED}${agents(`u: { ${READ} }`)}`, [revoke]);
      expect({ transactions, changes }).toEqual({ transactions: 1, changes: [] });
      expect((await world.agent('t')).status_detail).toBe('by hand');
    });

    it('applies only the plan that was shown, also when governance is changed while the version is compared', async () => {
      const world = await governed();
      await world.apply(CONNECTED);
      const governance = read(`${CONNECTED}${two}`);
      const shown = await planGovernance(broker, world.id, governance, world.values, world.now);
      if (!shown.ok) throw new Error('not planned');
      const { store, vault } = broker;
      const { id: organisationId, values: resolved, now } = world;
      const db = changedAfterReading(store.db, 'governance_versions', rename(world, `other ${world.id}`));
      const applying = { store: { db, dialect: store.dialect }, vault, organisationId, governance, resolved };
      const options = { plannedFor: shown.version };
      const transact = <Made>(make: (tx: Db) => Promise<Made>) => store.db.transaction().execute(make);
      const applied = await applyFile({ ...applying, clock: () => now, options }, transact);
      expect(applied).toEqual({ ok: false, problems: [], changed: true });
      expect((await world.present()).agents).toEqual([]);
    });

    // With SQLite no other write can come between.
    it.runIf(kind === 'postgres')('plans again when an agent is suspended while the apply is written', async () => {
      const world = await governed();
      await world.apply(`${CONNECTED}${two}`);
      const { store, vault } = broker;
      const { id: organisationId, values: resolved, now } = world;
      const suspend = async () => {
        const move = { from: ['pending_bind'] as const, to: 'suspended' as const, cause: 'owner_manual' as const };
        const agent = await world.agent('t');
        expect(await moveAgent(store.db, { organisationId, id: agent.id }, { ...move, detail: null }, now)).toBe(true);
      };
      let transactions = 0;
      const governance = read(`${CONNECTED}${agents(`u: { ${READ} }`)}`);
      const applied = await applyFile(
        { store, vault, organisationId, governance, resolved, clock: () => now },
        async (make) => {
          const isFirst = transactions++ === 0;
          return await store.db
            .transaction()
            .execute((tx) => make(isFirst ? changedAfterReading(tx, 'governance_versions', suspend) : tx));
        },
      );
      if (!applied.ok) throw new Error('not applied');
      expect(transactions).toBe(2);
      expect(applied.plan.changes.map(({ details }) => details.at(-1))).toContain('status: suspended → revoked');
      expect(await world.agent('t')).toMatchObject({
        status: 'revoked',
        status_detail: 'Removed from the governance file while it was suspended.',
      });
    });

    it('plans for an outdated version when a setting is changed after the organisation was read', async () => {
      const world = await governed();
      const { store, vault } = broker;
      const text = `organisation: kept ${world.id}\n`;
      await world.apply(text);
      const db = changedAfterReading(store.db, 'organisations', rename(world, `other ${world.id}`));
      const shown = await planGovernance(
        { store: { ...store, db }, vault },
        world.id,
        read(text),
        world.values,
        world.now,
      );
      const later = await planGovernance(broker, world.id, read(text), world.values, world.now);
      if (!shown.ok || !later.ok) throw new Error('not planned');
      expect([shown.plan.changes.length, later.plan.changes.length]).toEqual([0, 1]);
      expect(shown.version).not.toBe(later.version);
    });

    it('completes however often governance is changed concurrently', async () => {
      const world = await governed();
      const names = ['a', 'b', 'c', 'd', 'e'].map((name) => `${name} ${world.id}`);
      const renames = names.map((name) => rename(world, name));
      const done = await overtaken(world, `organisation: kept ${world.id}\n${CONNECTED}`, renames);
      expect(done.transactions).toBe(4);
      const { organisation } = await world.present();
      expect(organisation.name).toBe(`kept ${world.id}`);
      expect(done.changes).toContain(`update organisation kept ${world.id}`);
    });
  });

  it('refuses a key of another agent, and one that was replaced', async () => {
    const world = await governed();
    const [first, second, third] = [newPublicKey(), newPublicKey(), newPublicKey()];
    const keyed = (keys: Record<string, string>) =>
      agents(...Object.entries(keys).map(([name, pem]) => `${name}: { public_key: { pem: ${JSON.stringify(pem)} } }`));
    expect(await world.refusal(keyed({ a: first, b: first }))).toEqual([
      expect.stringContaining('agents.b.public_key: this is the key of the agent "a"'),
    ]);
    await world.apply(keyed({ a: first, b: second }));
    // Under another name in the file, which does not rename the agent.
    expect(await world.refusal(keyed({ renamed: first, b: second }))).toEqual([
      expect.stringContaining(
        'agents.renamed.public_key: this is the key of the agent "a". Every agent has its own, and none can be renamed: a name is for people only, keep it.',
      ),
    ]);
    expect(await world.refusal(keyed({ a: first, b: second, c: second }))).toHaveLength(1);
    await world.apply(keyed({ a: third, b: second }));
    expect(await world.refusal(keyed({ a: first, b: second }))).toEqual([
      expect.stringContaining('was replaced by another one'),
    ]);
    expect((await world.apply(keyed({ a: third, b: second }))).plan.changes).toEqual([]);
    await world.apply(keyed({ b: second }));
    const place = { organisationId: world.id, id: (await world.agent('a')).id };
    const move = { from: ['revoked' as const], to: 'deleted' as const, cause: 'owner_manual' as const, detail: null };
    expect(await moveAgent(db, place, move, world.now)).toBe(true);
    expect(await world.refusal(keyed({ a: third, b: second }))).toEqual([
      expect.stringContaining('this is the key of the agent "a", which was deleted'),
    ]);
  });

  onOne('keeps the key of an agent when the file names none', async () => {
    const world = await governed();
    await world.apply(agents('t: {}'));
    const { id } = await world.agent('t');
    const key = parsePublicKey(newPublicKey());
    if (!key.ok) throw new Error(key.error);
    await bindKey(db, { organisationId: world.id, id }, key, world.now);
    expect((await world.apply(agents('t: {}'))).plan.changes).toEqual([]);
    expect((await world.agent('t')).key_fingerprint).toBe(key.fingerprint);
  });
});
