/** A complete broker for a test: a real store, real keys, a real listener, a real platform to call. */

import { join } from 'node:path';
import { beforeAll, beforeEach } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { newAgentId, uuidv4 } from '../../broker/crypto/ids.ts';
import { parsePublicKey } from '../../broker/crypto/public-key.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { type Running, type ServeOptions, serve } from '../../broker/process/main.ts';
import { putAgent, putGrant } from '../../broker/store/agents.ts';
import { purgeBreakers } from '../../broker/store/breakers.ts';
import { putConnection } from '../../broker/store/connections.ts';
import { putGuardrails, putPlatform, putPolicy } from '../../broker/store/governed-versions.ts';
import { putOrganisation, putOwner } from '../../broker/store/organisations.ts';
import type { Db } from '../../broker/store/store.ts';
import type { AgentTable } from '../../broker/store/tables/agents.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import type { GrantTable } from '../../broker/store/tables/rules.ts';
import { type Answer, jsonRequest, type KeyPair, makeKeyPair, send, TestAgent } from './agent.ts';
import { CONSOLE_BUNDLE } from './checkout.ts';
import { expectDeclared } from './declared-routes.ts';
import { afterFile } from './runner/after-file.ts';
import { startUpstream, type Upstream } from './servers/upstream.ts';
import { copyMigratedStore, newFolder, newMigratedDatabase, type StoreKind } from './stores.ts';

/** The credential of every test connection: finding it anywhere means that it leaked. */
export const CANARY = 'CANARY-7f3a-0123456789-abcdefghij';

export type World = {
  running: Running;
  /** The database of the running broker. */
  readonly db: Db;
  upstream: Upstream;
  /** Milliseconds added to the real clock. */
  clock: { skewMs: number };
  environment: Record<string, string>;
  /** Returns the next key pair of a small pool, because making one takes longer than many tests. Consecutive ones differ. */
  keys(): KeyPair;
  /** Deletes strikes and open breakers, so that a table of malformed calls can continue. */
  forgive(): Promise<void>;
  /** Stops the broker and starts it again on the same store. */
  restart(): Promise<void>;
  /** `rules`: of its policy `default`, if it should have one. */
  organisation(options?: OrganisationOptions): Promise<Organisation>;
  /** Creates one with the platform `demo`, connected. */
  demoOrganisation(options?: OrganisationOptions & PlatformOptions): Promise<Organisation>;
};

type OrganisationOptions = { name?: string; guardrails?: readonly unknown[]; rules?: readonly unknown[] };
type PlatformOptions = { manifest?: Record<string, unknown>; secret?: string | null };

export type Organisation = {
  id: string;
  owner: OwnerTable;
  /** Returns the platform's id. `secret: null` omits the connection. */
  platform(options?: PlatformOptions & { id?: string }): Promise<string>;
  /** Adds a connection to a platform. Returns its id. */
  connection(
    platformId: string,
    options?: { secret?: string | null; isDefault?: boolean; upstreamScopes?: string[] },
  ): Promise<string>;
  policy(rules: readonly unknown[], name?: string): Promise<string>;
  guardrails(rules: readonly unknown[]): Promise<void>;
  /** `rules`: of a policy of its own, by default DEMO_RULES; or `policy`, the id of one, or null for none. */
  agent(options?: {
    name?: string;
    rules?: readonly unknown[];
    policy?: string | null;
    keys?: KeyPair;
    agent?: Partial<AgentTable>;
    grants?: Record<string, Partial<GrantTable> & { scopeList?: string[] }>;
  }): Promise<TestAgent>;
  /** Adds an owner. */
  addOwner(role: OwnerTable['role']): Promise<OwnerTable>;
  /** Sends a request with a session of the owner, or of another one. The answer is checked against the route's declaration. */
  ask(method: string, path: string, body?: unknown, by?: OwnerTable): Promise<Answer>;
  /** Decides a held call by its approval's id. */
  approve(id: string | null | undefined, body?: unknown, by?: OwnerTable): Promise<Answer>;
  deny(id: string | null | undefined, body?: unknown, by?: OwnerTable): Promise<Answer>;
  /** Returns the approvals that are pending, as owners see them. */
  pending(): Promise<Answer['body'][]>;
};

export const DEMO_SCOPES = {
  'demo:read': ['GET /items', 'GET /items/*'],
  'demo:write': ['POST /items', 'PATCH /items/*'],
  'demo:delete': ['DELETE /items/*'],
};

/** Allows reads, holds POST, allows the rest. */
export const DEMO_RULES = [
  { effect: 'allow', methods: ['GET', 'PATCH', 'PUT', 'DELETE'] },
  { effect: 'require_approval', methods: ['POST'] },
];

export const ALLOW_ALL = [{ effect: 'allow' }];

/** A call that is allowed immediately. */
export const READ = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };

/** A call that is held for an approval under DEMO_RULES. */
export const WRITE = {
  platform: 'demo',
  endpoint: '/items',
  method: 'POST',
  scope: 'demo:write',
  data: { title: 'x' },
};

const KEY_PAIRS = 3;

/** `before`: sets up what the broker is started with, by its data folder. */
export type WorldOptions = {
  before?: (data: string) => Promise<Pick<ServeOptions, 'allowPrivate' | 'beforeServing'>>;
};

/** Starts a world on a store; it ends with the test file. */
export async function startWorld(
  store: StoreKind = 'sqlite',
  environment: Record<string, string> = {},
  options: WorldOptions = {},
): Promise<World> {
  const upstream = await startUpstream();
  const clock = { skewMs: 0 };
  const data = newFolder();
  if (store === 'sqlite') copyMigratedStore(join(data, 'store'));
  const env: Record<string, string> = {
    PORT: '0',
    LOG_LEVEL: 'silent',
    AGENT_BROKER_DATA: data,
    AGENT_BROKER_ALLOW_PRIVATE: upstream.address,
    AGENT_BROKER_LIMIT_FACTOR: '1000',
    // Test files share one server, which allows a hundred connections; that of `.ci/run` allows two hundred.
    ...(store === 'postgres' && { DATABASE_URL: await newMigratedDatabase(), DATABASE_CONNECTIONS: '8' }),
    ...environment,
  };
  const keyPairs: KeyPair[] = [];
  let keyPairsTaken = 0;
  const more = await options.before?.(data);
  const start = () =>
    serve(readConfig(env), { clock: () => Date.now() + clock.skewMs, consoleBundle: CONSOLE_BUNDLE, ...more });
  const world: World = {
    running: await start(),
    get db() {
      return world.running.broker.store.db;
    },
    upstream,
    clock,
    environment: env,
    keys: () => {
      const index = keyPairsTaken++ % KEY_PAIRS;
      keyPairs[index] ??= makeKeyPair();
      return keyPairs[index];
    },
    forgive: () => purgeBreakers(world.db, Number.MAX_SAFE_INTEGER),
    restart: async () => {
      await world.running.stop();
      // Lets this process's clients notice that their keep-alive connections are closed.
      for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
      // The same port, so that agents' base URLs and audiences stay valid.
      env.PORT = new URL(world.running.baseUrl).port;
      world.running = await start();
    },
    organisation: (options) => makeOrganisation(world, options),
    demoOrganisation: async ({ manifest = {}, secret = CANARY, ...options } = {}) => {
      const organisation = await makeOrganisation(world, options);
      await organisation.platform({ manifest, secret });
      return organisation;
    },
  };
  afterFile(() => world.running.stop());
  return world;
}

async function makeOrganisation(world: World, options: OrganisationOptions = {}): Promise<Organisation> {
  const now = world.running.broker.clock();
  const id = uuidv4();
  await putOrganisation(world.db, {
    id,
    name: options.name ?? `org-${id.slice(0, 8)}`,
    publish_identity_documents: 0,
    guardrails_version: 0,
    approval_ttl_ms: 24 * 3600 * 1000,
    created_at: now,
  });
  const owner = await putOwner(world.db, {
    organisation_id: id,
    id: uuidv4(),
    email: `owner-${id.slice(0, 8)}@acme.example`,
    role: 'admin',
    origin: 'first_start',
    created_at: now,
  });
  const organisation = organisationOf(world, owner);
  if (options.guardrails) await organisation.guardrails(options.guardrails);
  if (options.rules) await organisation.policy(options.rules, 'default');
  return organisation;
}

/** Returns the organisation of an existing owner. */
export function organisationOf(world: World, owner: OwnerTable): Organisation {
  const { organisation_id: id } = owner;
  // Read each time: a restart replaces them.
  const broker = () => world.running.broker;
  const now = broker().clock();
  let owners = 0;
  const organisation: Organisation = {
    id,
    owner,
    platform: async ({ id: platformId = 'demo', manifest = {}, secret = CANARY } = {}) => {
      const whole = {
        kind: 'rest',
        base_url: `${world.upstream.url}/v1`,
        auth: { type: 'bearer' },
        scopes: DEMO_SCOPES,
        ...manifest,
      };
      await putPlatform(world.db, { organisationId: id, platformId, manifest: JSON.stringify(whole) }, now);
      if (secret !== null) await organisation.connection(platformId, { secret });
      return platformId;
    },
    connection: async (platformId, { secret = CANARY, isDefault = true, upstreamScopes } = {}) => {
      const connectionId = uuidv4();
      const place = { table: 'connections' as const, organisationId: id, rowId: connectionId };
      await putConnection(world.db, {
        organisation_id: id,
        id: connectionId,
        platform_id: platformId,
        label: isDefault ? `${platformId}-main` : `${platformId}-${connectionId.slice(0, 8)}`,
        is_default: isDefault ? 1 : 0,
        status: 'active',
        credential: secret === null ? null : broker().vault.seal(place, secret),
        secret_reference: null,
        upstream_scopes: upstreamScopes ? JSON.stringify(upstreamScopes) : null,
        revision: 1,
        created_at: now,
      });
      return connectionId;
    },
    policy: async (rules, name = `policy-${uuidv4().slice(0, 8)}`) => {
      const policyId = uuidv4();
      await putPolicy(world.db, { organisationId: id, id: policyId, name, rules: JSON.stringify(rules) }, now);
      return policyId;
    },
    guardrails: async (rules) => {
      await putGuardrails(world.db, id, JSON.stringify(rules), now);
    },
    agent: async ({
      name = 'triage',
      rules = DEMO_RULES,
      policy,
      keys = world.keys(),
      agent = {},
      grants = { demo: {} },
    } = {}) => {
      const parsed = parsePublicKey(keys.publicPem);
      if (!parsed.ok) throw new Error(parsed.error);
      const row: AgentTable = {
        organisation_id: id,
        id: uuidv4(),
        agent_id: newAgentId(),
        name,
        owner_id: owner.id,
        agent_type: 'key',
        status: 'active',
        status_since: now,
        status_cause: null,
        status_detail: null,
        policy_id: policy === undefined ? await organisation.policy(rules) : policy,
        origin: 'owner',
        parent_id: null,
        public_key_pem: parsed.pem,
        key_fingerprint: parsed.fingerprint,
        created_at: now,
        expires_at: null,
        former_owners: null,
        labels: null,
        ...agent,
      };
      await putAgent(world.db, row);
      for (const [platformId, { scopeList = Object.keys(DEMO_SCOPES), ...terms }] of Object.entries(grants))
        await putGrant(world.db, {
          organisation_id: id,
          id: uuidv4(),
          agent_id: row.id,
          platform_id: platformId,
          connection_id: null,
          scopes: JSON.stringify(scopeList),
          constraints: '{}',
          require_approval: 0,
          expires_at: null,
          expires_text: null,
          created_at: now,
          ...terms,
        });
      const made = new TestAgent({
        baseUrl: world.running.baseUrl,
        id: row.id,
        agentId: row.agent_id,
        ownerId: owner.id,
        keys,
      });
      made.clock = () => Date.now() + world.clock.skewMs;
      return made;
    },
    addOwner: (role) =>
      putOwner(world.db, {
        organisation_id: id,
        id: uuidv4(),
        email: `${role}-${uuidv4().slice(0, 8)}@acme.example`,
        role,
        origin: 'added',
        // Later than the owner before, so that the order by time is the order of creation.
        created_at: now + ++owners,
      }),
    ask: async (method, path, body, by = owner) => {
      const answer = await send(
        world.running.baseUrl + path,
        jsonRequest(method, body, { authorization: `Bearer ${mintOwnerSession(world.running.broker, by).token}` }),
      );
      expectDeclared(method, path, answer);
      return answer;
    },
    approve: (id, body = {}, by) => organisation.ask('POST', `/owner/approvals/${id}/approve`, body, by),
    deny: (id, body = {}, by) => organisation.ask('POST', `/owner/approvals/${id}/deny`, body, by),
    pending: async () => (await organisation.ask('GET', '/owner/approvals?status=pending')).body.approvals,
  };
  return organisation;
}

/**
 * Fixtures that hooks create and tests use as if they existed from the start:
 *
 *     const world = givenWorld(store);
 *     const organisation = shared(() => world.demoOrganisation());
 *     const agent = fresh(() => organisation.agent());
 *
 * Fixtures of `test.extend` are parameters of each test, which functions beside the tests cannot see; these are in scope for both.
 */

/** Created once, before the tests of this `describe`. */
export function shared<T extends object>(make: () => T | Promise<T>): T {
  let made: T | undefined;
  beforeAll(async () => {
    made = await make();
  });
  return standIn(() => made);
}

/** Created before each test of this `describe`. */
export function fresh<T extends object>(make: () => T | Promise<T>): T {
  let made: T | undefined;
  beforeEach(async () => {
    made = await make();
  });
  return standIn(() => made);
}

/**
 * A broker for the tests of this `describe`. Before each test its clock is reset, and its platform has no requests and the default answer.
 * `environment`: a function where earlier hooks determine its values.
 */
export function givenWorld(
  store: StoreKind = 'sqlite',
  environment: Record<string, string> | (() => Record<string, string>) = {},
  options: WorldOptions = {},
): World {
  const world = shared(() =>
    startWorld(store, typeof environment === 'function' ? environment() : environment, options),
  );
  beforeEach(() => {
    world.clock.skewMs = 0;
    world.upstream.seen.length = 0;
    world.upstream.answer = undefined;
  });
  return world;
}

/** Returns a proxy of an object that does not exist yet. */
function standIn<T extends object>(current: () => T | undefined): T {
  const now = (): T => {
    const made = current();
    if (made === undefined) throw new Error('This is made when the tests run: use it in a test or a hook.');
    return made;
  };
  return new Proxy({} as T, {
    get: (_, key) => {
      const made = now();
      const value = Reflect.get(made, key);
      // Bound, because private members of a class cannot be reached through a proxy.
      return typeof value === 'function' ? value.bind(made) : value;
    },
    set: (_, key, value) => Reflect.set(now(), key, value),
    has: (_, key) => Reflect.has(now(), key),
    ownKeys: () => Reflect.ownKeys(now()),
    getOwnPropertyDescriptor: (_, key) => Reflect.getOwnPropertyDescriptor(now(), key),
    getPrototypeOf: () => Reflect.getPrototypeOf(now()),
  });
}
