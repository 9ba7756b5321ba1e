/** Creates organisations with rows in every table, and reads all that is stored of each. */
import { createECDH, createHash, randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { Kysely, TableMetadata } from 'kysely';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import { newAgentId } from '../../broker/crypto/ids.ts';
import { rootOfEdge } from '../../broker/receipt-log/merkle.ts';
import { appendRows, readEdge } from '../../broker/receipt-log/tree.ts';
import { addCounts, moveMark } from '../../broker/store/activity-counts.ts';
import { putCallMarks } from '../../broker/store/call-marks.ts';
import { putGovernanceApply } from '../../broker/store/governance-applies.ts';
import { putHeldJoin } from '../../broker/store/held-joins.ts';
import { takeLease } from '../../broker/store/leases.ts';
import { addToLimit } from '../../broker/store/limit-counts.ts';
import { putMcpAuthorisation } from '../../broker/store/mcp-authorisations.ts';
import { beginMcpRepeat } from '../../broker/store/mcp-repeats.ts';
import { putDeliveries } from '../../broker/store/notice-deliveries.ts';
import { putOAuthFlow } from '../../broker/store/oauth-flows.ts';
import { addPersonTokens, putFirstPersonKey, putPerson } from '../../broker/store/people.ts';
import { putPersonConsent } from '../../broker/store/person-consents.ts';
import { putPersonSession } from '../../broker/store/person-sessions.ts';
import { putPlatformSecret } from '../../broker/store/platform-secrets.ts';
import { moveHead, putCheckpoint } from '../../broker/store/receipt-logs.ts';
import type { Schema } from '../../broker/store/schema.ts';
import { putSeenValues } from '../../broker/store/seen-values.ts';
import { putStandingApproval } from '../../broker/store/standing-approvals.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { putTokenRevocations } from '../../broker/store/token-revocations.ts';
import { claimUpstreamToken } from '../../broker/store/upstream-tokens.ts';
import { makeKeyPair, send, type TestAgent } from './agent.ts';
import { DEMO_RULES, type Organisation, type World } from './world.ts';

/** Tables that belong to the broker and not to an organisation; and one that has rows only within a transaction. */
const BROKERS = new Set([
  'meta',
  'instances',
  'leases',
  'signing_keys',
  'secret_keys',
  'oauth_records',
  'bulk_changes',
]);

/** Creates one of everything in a new organisation, named after it; an owner of each role, the first one separate. */
export async function furnish(
  world: World,
  name: string,
): Promise<{ organisation: Organisation; agent: TestAgent; owners: OwnerTable[] }> {
  const { broker } = world.running;
  const organisation = await world.organisation({
    name,
    guardrails: [{ name: `${name}-guardrail`, effect: 'require_approval', methods: ['POST'] }],
  });
  const platform = await organisation.platform({ id: `${name}-platform` });
  const tools = { kind: 'mcp', base_url: toolServerOf(name), scopes: { 'tools:all': ['tool *'] } };
  await organisation.platform({ id: `${name}-tools`, manifest: tools, secret: null });
  const policy = await organisation.policy(DEMO_RULES, `${name}-policy`);
  const agent = await organisation.agent({
    name: `${name}-agent`,
    policy,
    grants: { [platform]: { scopeList: ['demo:read', 'demo:write'] } },
  });
  const call = { platform, endpoint: '/items', scope: 'demo:read', reason: `${name} reads` };
  const held = { platform, endpoint: '/items', method: 'POST', scope: 'demo:write', data: {}, reason: `${name} asks` };
  await agent.act({ ...call, method: 'GET' });
  const change = { ...held, endpoint: '/items/1', method: 'PATCH' };
  await agent.act(change, { 'idempotency-key': `${name}-key` });
  await agent.act(held);
  await agent.act(held);
  await agent.request('POST', '/v1/access-request', json({ platform, scope: 'demo:delete', reason: `${name} wants` }));
  await agent.request('POST', '/v1/agents/self/diagnostics', json({ message: `${name} wonders`, severity: 'warning' }));
  // A signature that does not match counts as a strike.
  const own = agent.keys;
  agent.keys = makeKeyPair();
  await agent.get('/v1/agents/me');
  agent.keys = own;
  await signInLink(broker, organisation.owner);
  await send(`${world.running.baseUrl}/owner/sign-out`, {
    method: 'POST',
    headers: { authorization: `Bearer ${mintOwnerSession(broker, organisation.owner).token}` },
  });
  const owners = [organisation.owner];
  for (const role of ['viewer', 'approver', 'admin'] as const) owners.push(await organisation.addOwner(role));
  for (const owner of owners) await putPasskey(world, owner, name);
  const former = await organisation.addOwner('viewer');
  await organisation.ask('DELETE', `/owner/owners/${former.id}`);
  await putNewcomers(world, organisation.owner, name);
  const key = { label: `${name}-static-key`, connection: `${platform}-main` };
  await organisation.ask('POST', `/owner/agents/${agent.agentId}/static-keys`, key);
  await organisation.ask('POST', `/owner/agents/${agent.agentId}/workload`, {
    issuer: `https://${name}.cluster.example`,
    subject: `system:serviceaccount:${name}:agent`,
  });
  await organisation.ask('POST', '/owner/pipelines', {
    name: `${name}-pipeline`,
    role: 'viewer',
    issuer: `https://${name}.ci.example`,
    subject: `repo:${name}/governance:pull_request`,
  });
  await putMcpClient(world, agent, organisation.owner, name);
  await putOAuth(world, organisation.owner, platform, name);
  await putNotices(world, organisation, agent, name);
  await putReceiptLog(world, organisation, name);
  await putAuditSink(world, organisation, name);
  for (const owner of owners) await putPushDevice(organisation, owner, name);
  // The current period: counters of past periods are purged.
  const [rule, period_start] = [`guardrail ${name}`, broker.clock()];
  const place = { organisation_id: organisation.id, rule, agent_id: agent.id, period_start };
  await addToLimit(broker.store.db, place, 1, undefined);
  const mark = { organisation_id: organisation.id, agent_id: agent.id, kind: name, made_at: broker.clock() };
  await putCallMarks(broker.store.db, [{ ...mark, audit_id: name }]);
  await putGovernanceApply(broker.store.db, {
    organisation_id: organisation.id,
    id: crypto.randomUUID(),
    made_by: organisation.owner.id,
    how: 'api',
    detail: `${name} file`,
    change_count: 1,
    changes: '[]',
    file_before: gzipSync(`# ${name} before\n`),
    created_at: broker.clock(),
  });
  return { organisation, agent, owners };
}

/** A platform's client secret, an owner's OAuth flow in progress, and a token refresh in progress. */
async function putOAuth(world: World, owner: OwnerTable, platform: string, name: string): Promise<void> {
  const { vault, clock } = world.running.broker;
  const now = clock();
  const organisationId = owner.organisation_id;
  const id = crypto.randomUUID();
  await putPlatformSecret(world.db, {
    organisation_id: organisationId,
    id,
    platform_id: platform,
    name: 'client_secret',
    value: vault.seal({ table: 'platform_secrets', organisationId, rowId: id }, `${name}-client-secret`),
    created_at: now,
  });
  const place = { organisationId, connectionId: crypto.randomUUID(), purpose: `${name}-purpose` };
  await claimUpstreamToken(world.db, place, {
    id: crypto.randomUUID(),
    name,
    now,
    until: now + 600_000,
    refused: undefined,
  });
  await putOAuthFlow(world.db, {
    state_hash: crypto.randomUUID(),
    organisation_id: organisationId,
    id,
    connection_id: crypto.randomUUID(),
    owner_id: owner.id,
    session_id: null,
    flow: vault.seal({ table: 'oauth_flows', organisationId, rowId: id }, '{}'),
    created_at: now,
    expires_at: now + 600_000,
  });
  await putTokenRevocations(world.db, [
    {
      organisation_id: organisationId,
      id,
      connection_id: crypto.randomUUID(),
      person_id: null,
      request: vault.seal({ table: 'token_revocations', organisationId, rowId: id }, '{}'),
      created_at: now,
      next_at: now + 600_000,
    },
  ]);
  await putPeople(world, owner, name);
}

/** A person whose tokens wait for an owner, and one whose consent is pending. */
async function putPeople(world: World, owner: OwnerTable, name: string): Promise<void> {
  const { store, vault, clock } = world.running.broker;
  const { db } = store;
  const [now, organisationId, id] = [clock(), owner.organisation_id, crypto.randomUUID()];
  const key = { organisation_id: organisationId, id: crypto.randomUUID() };
  const place = { table: 'person_keys', organisationId, rowId: key.id } as const;
  await putFirstPersonKey(db, { ...key, hash_key: vault.seal(place, `${name}-key-0123456789-0123456789`) });
  const person_id = await putPerson(db, { organisationId, hash: `${name}-hash`, now });
  const about = {
    organisation_id: organisationId,
    platform_id: `${name}-platform`,
    connection_id: crypto.randomUUID(),
    person_id,
    named_by: `${name}-source`,
    verified: 0,
    agent_id: crypto.randomUUID(),
    created_at: now,
  } as const;
  const facts = {
    server: name,
    client_id: name,
    account: `${name}-account`,
    connected_at: now,
    connected_by: person_id,
  };
  await addPersonTokens(
    db,
    { ...about, id, consent_id: crypto.randomUUID(), browser_hash: null, standing: 'unconfirmed', status: 'active' },
    {
      credential: vault.seal({ table: 'person_tokens', organisationId, rowId: id }, `${name}-token-of-a-person`),
      refreshToken: null,
      tokenId: crypto.randomUUID(),
      oauth: JSON.stringify({ ...facts, refreshed_at: null, expires_at: null }),
      upstreamScopes: null,
    },
  );
  const session = { cookie_hash: `${name}-browser`, organisation_id: organisationId, person_id, consent_id: '' };
  await putPersonSession(db, { ...session, expires_at: now + 600_000 }, undefined);
  await putPersonConsent(db, {
    ...about,
    id: crypto.randomUUID(),
    token_hash: `${name}-consent-hash`,
    family_id: about.agent_id,
    status: 'pending',
    browser_hash: null,
    state_hash: null,
    flow: null,
    expires_at: now + 600_000,
  });
}

const toolServerOf = (name: string) => `https://${name}.example/mcp`;

/** A registered agent, an invited one, a secret authorisation, a refused agent, and a new tool. */
async function putNewcomers(world: World, owner: OwnerTable, name: string): Promise<void> {
  const now = world.running.broker.clock();
  const common = {
    organisation_id: owner.organisation_id,
    owner_id: owner.id,
    created_at: now,
    expires_at: now + 86_400_000,
  };
  await world.db
    .insertInto('invites')
    .values({
      ...common,
      id: crypto.randomUUID(),
      token_hash: crypto.randomUUID(),
      agent_name: `${name}-invited`,
      policy_id: null,
      grants: '[]',
      claimed_at: null,
      agent_id: null,
    })
    .execute();
  await world.db
    .insertInto('secret_authorizations')
    .values({
      ...common,
      id: crypto.randomUUID(),
      token_hash: crypto.randomUUID(),
      agent_id: crypto.randomUUID(),
      platform_id: `${name}-platform`,
      label: `${name}-sealed`,
      scopes: null,
      used_at: null,
      connection_id: null,
    })
    .execute();
  await world.db
    .insertInto('former_keys')
    .values({
      organisation_id: owner.organisation_id,
      fingerprint: `${name}-former`,
      agent_id: crypto.randomUUID(),
      replaced_at: now,
    })
    .execute();
  const counted = { organisation_id: owner.organisation_id, at: now, name: `${name}-counted`, calls: 1 } as const;
  await addCounts(world.db, [{ ...counted, dimension: 'agent_day', outcome: 'allowed' }]);
  // Beyond all rows: the background job counts nothing while the stored rows are compared.
  await moveMark(world.db, owner.organisation_id, '', 'ffffffff-ffff-7fff-8fff-ffffffffffff');
  await world.db
    .insertInto('refusal_counts')
    .values({ organisation_id: owner.organisation_id, agent_id: crypto.randomUUID(), refusals: 1, window_start: now })
    .execute();
  await world.db
    .insertInto('tools')
    .values({
      organisation_id: owner.organisation_id,
      platform_id: `${name}-tools`,
      server: toolServerOf(name),
      name: `${name}-tool`,
      accepted: null,
      accepted_hash: null,
      accepted_at: null,
      accepted_by: null,
      offered: '{}',
      offered_hash: 'x',
      offered_at: now,
      effect: 'reads',
      effect_by: null,
    })
    .execute();
  await world.db
    .insertInto('registrations')
    .values({
      ...common,
      token_hash: crypto.randomUUID(),
      id: crypto.randomUUID(),
      agent_id: newAgentId(),
      agent_name: `${name}-registered`,
      agent_description: `${name} describes itself`,
      requested_scopes: '[]',
      source: '192.0.2.1',
      status: 'pending',
      decided_at: null,
      decided_by: null,
      decision_audit_id: null,
      granted: null,
      private_key: null,
      claim_until: null,
      claimed_at: null,
    })
    .execute();
}

/** Authorises an MCP client. */
async function putMcpClient(world: World, agent: TestAgent, owner: OwnerTable, name: string): Promise<void> {
  const { broker } = world.running;
  const now = broker.clock();
  await putMcpAuthorisation(broker.store.db, {
    organisation_id: owner.organisation_id,
    id: crypto.randomUUID(),
    agent_id: agent.id,
    owner_id: owner.id,
    client_id: `${name}-client`,
    client_name: `${name} client`,
    redirect_host: `${name}.example`,
    scope: 'mcp:read',
    created_at: now,
    expires_at: now + 86_400_000,
  });
  await beginMcpRepeat(
    broker.store.db,
    {
      organisation_id: owner.organisation_id,
      agent_id: agent.id,
      hash: `${name}-hash`,
      key: `${name}-key`,
      reason: `${name} repeats`,
      approval_id: null,
      expires_at: now + 86_400_000,
    },
    now,
  );
  // Terms that cannot be opened allow nothing, but are listed.
  await putStandingApproval(broker.store.db, {
    organisation_id: owner.organisation_id,
    id: crypto.randomUUID(),
    agent_id: agent.id,
    platform_id: `${name}-demo`,
    connection_id: crypto.randomUUID(),
    grant_id: crypto.randomUUID(),
    scope: 'demo:write',
    approval_id: crypto.randomUUID(),
    session_id: null,
    uses: 3,
    expires_at: now + 3_600_000,
    decided_on: '{}',
    terms: Buffer.from(`${name} terms`),
    terms_hash: '0'.repeat(64),
    decided_by: owner.id,
    decided_how: 'api',
    decided_with: null,
    created_at: now,
  });
  await putHeldJoin(broker.store.db, {
    organisation_id: owner.organisation_id,
    agent_id: agent.id,
    key: `${name}-join`,
    separate: '',
    id: crypto.randomUUID(),
    now,
    openMs: 0,
  });
  const seenValue = { hash: `${name}-deed`, kind: 'operation' as const, changed: 1 as const, created_at: now };
  await putSeenValues(broker.store.db, [{ organisation_id: owner.organisation_id, agent_id: agent.id, ...seenValue }]);
}

/** A channel with a message, and a notice in the outbox, which stays there: from now on the broker of this world sends nothing. */
async function putNotices(world: World, { owner, ask }: Organisation, agent: TestAgent, name: string): Promise<void> {
  const { broker } = world.running;
  const { db } = broker.store;
  const now = broker.clock();
  await takeLease(db, { name: 'notices', holder: 'nobody', now, until: Number.MAX_SAFE_INTEGER, isFree: true });
  const channel = { name: `${name}-channel`, kind: 'webhook', url: `https://127.0.0.1/${name}` };
  const { body } = await ask('POST', '/owner/channels', channel);
  const place = { organisation_id: owner.organisation_id, subject_id: agent.id };
  await db
    .insertInto('notices')
    .values({
      ...place,
      id: crypto.randomUUID(),
      event: 'agent_suspended',
      agent_id: agent.id,
      platform_id: null,
      created_at: now,
    })
    .execute();
  const ids = { id: crypto.randomUUID(), channel_id: body.id, notice_id: crypto.randomUUID() };
  const states = { step: 'first', state: 'due', attempts: 0, external_ref: null, last_error: null } as const;
  const times = { due_at: now, created_at: now };
  await putDeliveries(db, [{ ...place, ...ids, ...states, ...times, event: 'agent_suspended' }]);
}

/** A receipt log with a tile above its entries, and a row that waits for its index: from now on this broker assigns none. */
async function putReceiptLog(world: World, { id }: Organisation, name: string): Promise<void> {
  const { broker } = world.running;
  const { db } = broker.store;
  const now = broker.clock();
  await takeLease(db, { name: 'receipt log', holder: 'nobody', now, until: Number.MAX_SAFE_INTEGER, isFree: true });
  const rows = Array.from({ length: 257 }, (_, at) => ({
    organisation_id: id,
    row_id: crypto.randomUUID(),
    row_hash: createHash('sha256').update(`${name} ${at}`).digest('hex'),
    finished_at: now,
  }));
  await db.transaction().execute(async (tx) => {
    for (const table of [
      'log_pending',
      'log_batches',
      'log_entries',
      'log_tiles',
      'log_checkpoints',
      'receipt_logs',
    ] as const)
      await tx.deleteFrom(table).where('organisation_id', '=', id).execute();
    const edge = await readEdge(tx, id, 0, '');
    await appendRows(
      tx,
      id,
      edge,
      rows.slice(0, 256).map(({ row_id: ids, row_hash: row_hashes, finished_at: last_at, organisation_id }) => ({
        organisation_id,
        rows: 1,
        ids,
        row_hashes,
        last_at,
      })),
      Date.now(),
    );
    const root = Buffer.from(rootOfEdge(edge)).toString('base64');
    await moveHead(tx, { organisation_id: id, origin: `${name}.example/orgs/${id}`, size: 256, root, from: 0 });
    const signature = Buffer.from(`${name}-signature`).toString('base64');
    await putCheckpoint(tx, { organisation_id: id, size: 256, root, at: now, signature }, `${name}-log-key`);
    await tx.insertInto('log_pending').values(rows.slice(256)).execute();
    await tx
      .insertInto('log_batches')
      .values({
        organisation_id: id,
        rows: 1,
        ids: crypto.randomUUID(),
        row_hashes: createHash('sha256').update(`${name} batch`).digest('hex'),
        first_at: now,
        last_at: now,
      })
      .execute();
    await tx
      .insertInto('audit_purges')
      .values({ organisation_id: id, kind: 'reads', next_index: 0, announced_index: 0, event_id: null })
      .execute();
  });
}

/** An audit sink; from now on the broker of this world pushes nothing. */
async function putAuditSink(world: World, { ask }: Organisation, name: string): Promise<void> {
  const { store, clock } = world.running.broker;
  await takeLease(store.db, {
    name: 'audit push',
    holder: 'nobody',
    now: clock(),
    until: Number.MAX_SAFE_INTEGER,
    isFree: true,
  });
  const sink = { name: `${name}-sink`, kind: 'webhook', url: `https://127.0.0.1/${name}` };
  const { status, text } = await ask('POST', '/owner/audit-sinks', sink);
  if (status !== 201) throw new Error(text);
}

/** A device of an owner with Web Push. */
async function putPushDevice({ ask }: Organisation, owner: OwnerTable, name: string): Promise<void> {
  const browser = createECDH('prime256v1');
  const device = {
    endpoint: `https://push.invalid/${owner.id}`,
    keys: { p256dh: browser.generateKeys('base64url'), auth: randomBytes(16).toString('base64url') },
    device_name: `${name}-phone`,
  };
  const { status, text } = await ask('POST', '/owner/push-subscriptions', device, owner);
  if (status !== 201) throw new Error(text);
}

async function putPasskey(world: World, owner: OwnerTable, name: string): Promise<void> {
  const { broker } = world.running;
  await broker.store.db
    .insertInto('passkeys')
    .values({
      organisation_id: owner.organisation_id,
      id: crypto.randomUUID(),
      owner_id: owner.id,
      credential_id: `${name}-${owner.role}-${crypto.randomUUID()}`,
      public_key: Buffer.from(name),
      counter: 0,
      transports: '[]',
      device_name: `${name}-phone`,
      aaguid: '00000000-0000-0000-0000-000000000000',
      synced: 0,
      status: 'active',
      created_at: broker.clock(),
      last_used_at: null,
    })
    .execute();
}

const json = (value: unknown) => ({ body: JSON.stringify(value), headers: { 'content-type': 'application/json' } });

/** Listing the tables takes a statement for each; a migrated database keeps its tables, so the list is cached. */
const tablesOf = new WeakMap<Kysely<Schema>, Promise<TableMetadata[]>>();

function tablesIn(db: Kysely<Schema>): Promise<TableMetadata[]> {
  const tables = tablesOf.get(db) ?? db.introspection.getTables();
  tablesOf.set(db, tables);
  return tables;
}

export type StoredRow = { table: string; row: Record<string, unknown> };

/** Reads every row of every table that belongs to organisations: of one organisation, or of all. */
export async function storedRows(db: Kysely<Schema>, organisationId?: string): Promise<StoredRow[]> {
  const found: StoredRow[] = [];
  for (const { name: table, columns } of await tablesIn(db)) {
    if (BROKERS.has(table) || table.startsWith('kysely_') || table.startsWith('sqlite_')) continue;
    const key = table === 'organisations' ? 'id' : 'organisation_id';
    if (!columns.some(({ name }) => name === key)) continue;
    let query = db.selectFrom(table as 'owners').selectAll();
    if (organisationId !== undefined) query = query.where(key as 'id', '=', organisationId);
    const rows = (await query.execute()) as Record<string, unknown>[];
    const texts = rows.map((row) => [JSON.stringify(row), row] as const).toSorted(([a], [b]) => (a < b ? -1 : 1));
    found.push(...texts.map(([, row]) => ({ table, row })));
  }
  return found;
}

/**
 * Returns the names of the tables that belong to organisations. On PostgreSQL partitions of the audit are tables, too: their rows are read through
 * the parent table.
 */
export async function organisationTables(db: Kysely<Schema>): Promise<string[]> {
  const tables = await tablesIn(db);
  const isOne = ({ name: table, columns }: (typeof tables)[number]) =>
    !BROKERS.has(table) && !table.startsWith('audit_rows_') && columns.some(({ name }) => name === 'organisation_id');
  return tables.filter(isOne).map(({ name }) => name);
}
