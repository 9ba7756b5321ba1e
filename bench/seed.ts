/** The store of a bench broker: one organisation, one platform, one policy, and a given number of agents. */

import { newAgentId, uuidv4 } from '../broker/crypto/ids.ts';
import { parsePublicKey } from '../broker/crypto/public-key.ts';
import type { Config } from '../broker/environment/config.ts';
import { GIT_PLATFORM } from '../broker/git/git-call.ts';
import { makeLog } from '../broker/log/log.ts';
import { parsePlatformEntry } from '../broker/platforms/builtin.ts';
import { openStore, startBroker } from '../broker/process/start.ts';
import { present } from '../broker/runtime/present.ts';
import { putConnection } from '../broker/store/connections.ts';
import { putGuardrails, putPlatform, putPolicy } from '../broker/store/governed-versions.ts';
import { putOrganisation, putOwner } from '../broker/store/organisations.ts';
import type { AgentTable } from '../broker/store/tables/agents.ts';
import type { GrantTable } from '../broker/store/tables/rules.ts';
import { givenClock } from '../broker/store-clock.ts';
import { BENCH_PLATFORM, BENCH_PLATFORM_ID, PEOPLE_PLATFORM_ID, PEOPLE_SCOPE, peoplePlatform } from './requests.ts';
import type { AgentKey, BenchAgent } from './tokens.ts';

/** Ten rules, of which a read of the bench matches the last two; one has a condition, which is evaluated at every call. */
const RULES = [
  { effect: 'deny', methods: ['DELETE'] },
  { effect: 'deny', endpoints: ['/admin/**'] },
  { effect: 'deny', platforms: ['payments'], methods: ['POST'] },
  { effect: 'deny', scopes: ['*.admin'] },
  { effect: 'require_approval', methods: ['POST', 'PATCH', 'PUT'] },
  { effect: 'require_approval', endpoints: ['/items/*/transfer', '/exports/**'] },
  { effect: 'require_approval', scopes: ['bench:refunds.*'] },
  { effect: 'deny', when: 'request.endpoint.startsWith("/items/0") || request.query.size() > 8' },
  { effect: 'allow', scopes: ['bench:items.*'], methods: ['GET'], endpoints: ['/items', '/items/*'] },
  { effect: 'allow', platforms: ['bench'], methods: ['GET'] },
];
const PEOPLE_RULES = [{ effect: 'allow', platforms: [PEOPLE_PLATFORM_ID] }];
const STREAM_RULES = [{ effect: 'allow', endpoints: ['/files/*', '/events/*', '/items/*'] }];
/** The rules of a careful owner for a coding agent. */
const GIT_RULES = [
  { effect: 'deny', when: 'has(request.git) && request.git.refs.exists(r, r.action == "delete")' },
  { effect: 'allow', platforms: [GIT_PLATFORM] },
];
const GUARDRAILS = [{ name: 'no-secrets', effect: 'deny', endpoints: ['/secrets/**'] }];

const ROWS_PER_STATEMENT = 500;

export const BENCH_OWNER = 'bench@acme.example';

/**
 * Fills an empty store and closes it again. Returns the agents that make calls: at most `callers` of all, evenly
 * spread over them. Many agents share one of `keys`, since generating 100,000 key pairs would take hours.
 */
export async function seed(
  config: Config,
  options: {
    agents: number;
    callers: number;
    upstreamUrl: string;
    gitUrl: string | undefined;
    peopleUrl: string | undefined;
    streams: boolean;
    keys: readonly AgentKey[];
  },
): Promise<BenchAgent[]> {
  const { agents, callers, keys, gitUrl, peopleUrl } = options;
  const log = makeLog('silent');
  const store = await openStore(config, log);
  try {
    const now = Date.now();
    const { broker } = await startBroker(store, {
      config,
      log,
      clock: givenClock(Date.now),
      baseUrl: 'http://localhost',
      own: [],
    });
    const { db } = store;
    const organisationId = uuidv4();
    const settings = { publish_identity_documents: 1, guardrails_version: 0, approval_ttl_ms: 86_400_000 } as const;
    await putOrganisation(db, { id: organisationId, name: 'bench', ...settings, created_at: now });
    const person = { email: BENCH_OWNER, role: 'admin', origin: 'first_start', created_at: now } as const;
    const owner = await putOwner(db, { organisation_id: organisationId, id: uuidv4(), ...person });
    const manifest = JSON.stringify({ ...BENCH_PLATFORM, base_url: options.upstreamUrl });
    await putPlatform(db, { organisationId, platformId: BENCH_PLATFORM_ID, manifest }, now);
    const connect = async (platformId: string, secret: string | null = `bench-credential-${uuidv4()}`) => {
      const id = uuidv4();
      const place = { table: 'connections', organisationId, rowId: id } as const;
      await putConnection(db, {
        organisation_id: organisationId,
        id,
        platform_id: platformId,
        label: platformId,
        is_default: 1,
        status: 'active',
        credential: secret === null ? null : broker.vault.seal(place, secret),
        secret_reference: null,
        upstream_scopes: null,
        revision: 1,
        created_at: now,
      });
    };
    await connect(BENCH_PLATFORM_ID);
    if (gitUrl !== undefined) {
      const host = parsePlatformEntry({ use: 'github', base_url: gitUrl, git_base_url: gitUrl });
      if (!host.success) throw host.error;
      await putPlatform(db, { organisationId, platformId: GIT_PLATFORM, manifest: JSON.stringify(host.data) }, now);
      await connect(GIT_PLATFORM);
    }
    if (peopleUrl !== undefined) {
      const manifest = JSON.stringify(peoplePlatform(peopleUrl));
      await putPlatform(db, { organisationId, platformId: PEOPLE_PLATFORM_ID, manifest }, now);
      await connect(PEOPLE_PLATFORM_ID, null);
    }
    const policy = uuidv4();
    const rules = JSON.stringify(rulesFor(options));
    await putPolicy(db, { organisationId, id: policy, name: 'bench', rules }, now);
    await putGuardrails(db, organisationId, JSON.stringify(GUARDRAILS), now);

    const registered = keys.map(({ publicKeyPem, privateKey }) => {
      const parsed = parsePublicKey(publicKeyPem);
      if (!parsed.ok) throw new Error(parsed.error);
      return { pem: parsed.pem, fingerprint: parsed.fingerprint, privateKey };
    });
    const every = Math.max(1, Math.floor(agents / callers));
    const called: BenchAgent[] = [];
    for (let from = 0; from < agents; from += ROWS_PER_STATEMENT) {
      const rows: AgentTable[] = [];
      for (let at = from; at < Math.min(agents, from + ROWS_PER_STATEMENT); at++) {
        const { pem, fingerprint, privateKey } = present(registered[at % registered.length], 'key');
        const row = agentRow(organisationId, owner.id, policy, { pem, fingerprint }, at, now);
        rows.push(row);
        const { agent_id: agentId, owner_id: ownerId } = row;
        if (at % every === 0 && called.length < callers) called.push({ agentId, ownerId, privateKey });
      }
      await db.insertInto('agents').values(rows).execute();
      await db.insertInto('grants').values(rows.map(grantRow)).execute();
      if (gitUrl !== undefined) await db.insertInto('grants').values(rows.map(gitGrantRow)).execute();
      if (peopleUrl !== undefined) await db.insertInto('grants').values(rows.map(peopleGrantRow)).execute();
    }
    await broker.outbound.close();
    return called;
  } finally {
    await store.close();
  }
}

/** With streams and a code host both, the rules of calls are in force, too. */
function rulesFor({
  streams,
  gitUrl,
  peopleUrl,
}: {
  streams: boolean;
  gitUrl: string | undefined;
  peopleUrl: string | undefined;
}): readonly object[] {
  if (peopleUrl !== undefined) return PEOPLE_RULES;
  if (streams) return gitUrl === undefined ? STREAM_RULES : [...RULES, ...STREAM_RULES, ...GIT_RULES];
  return gitUrl === undefined ? RULES : GIT_RULES;
}

function agentRow(
  organisation_id: string,
  owner_id: string,
  policy_id: string,
  key: { pem: string; fingerprint: string },
  number: number,
  now: number,
): AgentTable {
  const ids = { organisation_id, id: uuidv4(), agent_id: newAgentId(), name: `bench-${number}`, owner_id, policy_id };
  const standing = { status: 'active', status_since: now, status_cause: null, status_detail: null } as const;
  const kind = { agent_type: 'key', origin: 'owner', parent_id: null } as const;
  const times = { created_at: now, expires_at: null };
  const rest = { former_owners: null, labels: null };
  return { ...ids, ...standing, ...kind, ...times, ...rest, public_key_pem: key.pem, key_fingerprint: key.fingerprint };
}

function grantRow({ organisation_id, id: agent_id, created_at }: AgentTable): GrantTable {
  return {
    organisation_id,
    id: uuidv4(),
    agent_id,
    platform_id: BENCH_PLATFORM_ID,
    connection_id: null,
    scopes: JSON.stringify(Object.keys(BENCH_PLATFORM.scopes)),
    constraints: '{}',
    require_approval: 0,
    expires_at: null,
    expires_text: null,
    created_at,
  };
}

const peopleGrantRow = (agent: AgentTable): GrantTable => ({
  ...grantRow(agent),
  platform_id: PEOPLE_PLATFORM_ID,
  scopes: JSON.stringify([PEOPLE_SCOPE]),
});

const gitGrantRow = (agent: AgentTable): GrantTable => ({
  ...grantRow(agent),
  platform_id: GIT_PLATFORM,
  scopes: JSON.stringify([`${GIT_PLATFORM}:contents.read`, `${GIT_PLATFORM}:contents.write`]),
  constraints: JSON.stringify({ repos: ['acme/*'], refs: ['agent/*'] }),
});
