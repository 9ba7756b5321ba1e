/**
 * Fills an owner's empty pages with examples: calls that the sandbox's own agent makes at an owner's request, with its own key and through the same
 * use case as all entry points. Nothing is imitated, and only the sandbox is called.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { importPKCS8, SignJWT } from 'jose';
import { z } from 'zod';
import { listOwnApprovals } from '../../approvals/own-approvals.ts';
import { type ChangingOwner, recordChange } from '../../audit/record-change.ts';
import type { AgentPrincipal, AuthenticateAgent } from '../../auth/principal.ts';
import type { Broker, Uses } from '../../broker.ts';
import { holderOf } from '../../calls/call.ts';
import type { CallServices } from '../../calls/call-services.ts';
import { perform } from '../../calls/perform.ts';
import type { Instant } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import { singleFlight } from '../../runtime/single-flight.ts';
import { findAgent } from '../../store/agents.ts';
import { type AuditRow, findAuditRow } from '../../store/audit.ts';
import { listPlatforms } from '../../store/platforms.ts';
import { readStored, StoredObject } from '../../store/stored-json.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import type { Action } from '../../wire/action.ts';
import { storeReport } from '../agents/diagnostics.ts';
import { ChangeRefused } from '../refused.ts';

export const SANDBOX_PLATFORM = 'sandbox';
export const SANDBOX_AGENT = 'sandbox-agent';

/** The file with the key of the sandbox's agent. */
export const sandboxProfile = (dataFolder: string): string => join(dataFolder, 'profiles', 'default.json');

const Profile = z.object({ agent_id: z.string(), owner_id: z.string(), private_key: z.string() });
type Profile = z.output<typeof Profile>;

type Ready = { agent: AgentTable; profile: Profile };

/** `call`: as requested. `row`: its audit row. */
export type DemoCall = { call: Action; row: AuditRow };
/** `waiting`: the approval that is pending now, of this demo or an earlier one; undefined: none is. */
export type DemoMade = { calls: DemoCall[]; waiting: string | undefined; reportId: string | undefined };

export type Demo = {
  /** Whether the demo is possible for this organisation, in this process; otherwise the reason, as a text for owners. */
  look(organisationId: string): Promise<{ ok: true; agent: AgentTable } | { ok: false; why: string }>;
  /**
   * Makes the calls, one after the other, recorded as started by this owner. Concurrent requests share one run.
   *
   * @param source the client address of the request
   * @throws ChangeRefused where no demo is possible; AuditUnavailable, StoreUnreviewed as any call
   */
  make(by: ChangingOwner, source: string): Promise<DemoMade>;
};

/** Lifetime of the token, which is used immediately. */
const TOKEN_SECONDS = 60;
const STARTED_BY = 'A demo that an admin began in the console.';

const READ: Action = { platform: SANDBOX_PLATFORM, endpoint: '/issues', method: 'GET', scope: 'sandbox:issues.read' };
/** Uses a read scope for a change, to be refused. */
const CHANGE: Action = {
  ...READ,
  endpoint: '/issues/1',
  method: 'PATCH',
  data: { state: 'closed' },
};
/** A small amount, so that the payment is enough for a hundred refunds. */
const REFUND: Action = {
  platform: SANDBOX_PLATFORM,
  endpoint: '/refunds',
  method: 'POST',
  scope: 'sandbox:refunds.create',
  data: { payment: 'pay_1001', amount: 100, currency: 'EUR', reason: 'A scratch on the lamp' },
};

/** Only the addresses in the broker's `testPlatforms` count as the sandbox: a sandbox platform that was moved elsewhere is not called. */
export function makeDemo(services: CallServices & Uses<'testPlatforms'>, authenticate: AuthenticateAgent): Demo {
  const { broker } = services;
  const oneAtATime = singleFlight<DemoMade>();
  const make = async (by: ChangingOwner, source: string): Promise<DemoMade> => {
    const found = await find(broker, by.owner.organisation_id);
    if (!found.ok) throw new ChangeRefused('conflict', found.why);
    const { agent, profile } = found;
    const change = { reason: 'demo_started', agent, platform: SANDBOX_PLATFORM };
    await recordChange(services, by, change, async () => undefined);
    const call = (action: Action) =>
      callAsAgent(services, { authenticate, profile, source, correlationId: by.correlationId }, action);
    const read = await call(READ);
    const refused = await call(CHANGE);
    const reportId = await report(broker, agent, refused.row);
    // One pending call is enough as an example, and its notice is sent only once.
    const before = await waitingRefund(broker, agent);
    if (before !== undefined) return { calls: [read, refused], waiting: before, reportId };
    const refund = await call(REFUND);
    const held = refund.row.result === 'held' ? refund.row.approval_id : null;
    return { calls: [read, refused, refund], waiting: held ?? undefined, reportId };
  };
  return {
    look: (organisationId) => find(broker, organisationId),
    make: (by, source) => oneAtATime(by.owner.organisation_id, () => make(by, source)),
  };
}

async function find(
  { config, store, testPlatforms }: Pick<Broker, 'config' | 'store' | 'testPlatforms'>,
  organisationId: string,
): Promise<({ ok: true } & Ready) | { ok: false; why: string }> {
  const no = (why: string) => ({ ok: false as const, why });
  const platform = (await listPlatforms(store.db, organisationId)).find((one) => one.platform_id === SANDBOX_PLATFORM);
  if (!platform) return no('This organisation has no sandbox.');
  const { base_url: url } = readStored(StoredObject, platform.manifest, 'manifest');
  const host = typeof url === 'string' ? URL.parse(url)?.host : undefined;
  if (host === undefined || !testPlatforms.includes(host))
    return no('The sandbox of this organisation does not run with this broker process.');
  const profile = await readProfile(config.dataFolder);
  const agent = profile && (await findAgent(store.db, organisationId, profile.agent_id));
  if (!profile || agent?.name !== SANDBOX_AGENT)
    return no(`The key of ${SANDBOX_AGENT} is not in the data folder of this broker process.`);
  if (agent.status !== 'active') return no(`${SANDBOX_AGENT} is ${agent.status}, so it makes no calls.`);
  return { ok: true, agent, profile };
}

/** Undefined when there is no usable profile. */
async function readProfile(dataFolder: string): Promise<Profile | undefined> {
  try {
    return Profile.parse(JSON.parse(await readFile(sandboxProfile(dataFolder), 'utf8')));
  } catch {
    return undefined;
  }
}

type As = { authenticate: AuthenticateAgent; profile: Profile; source: string; correlationId: string };

/** Does what an entry point does for an agent's request. */
async function callAsAgent(
  services: CallServices,
  { authenticate, profile, source, correlationId }: As,
  action: Action,
): Promise<DemoCall> {
  const token = await signToken(profile, services.broker.clock());
  const who = await authenticate(token, action.platform, source);
  if (who.kind === 'refused')
    throw new ChangeRefused('conflict', `${SANDBOX_AGENT} has another key now: ${who.detail}`);
  const call = { ...action, reason: STARTED_BY };
  return { call, row: await performOnce(services, who, { call, correlationId }) };
}

async function performOnce(
  services: CallServices,
  who: AgentPrincipal,
  { call, correlationId }: { call: Action; correlationId: string },
): Promise<AuditRow> {
  const lease = services.budget.lease(holderOf(who));
  try {
    const request = { asked: { ok: true as const, action: call }, correlationId, lease };
    const done = await perform(services, who, request, ({ call }) => ({ status: 0, auditId: call.auditId }));
    if (done.kind !== 'answered') throw new Error('a call without an Idempotency-Key is answered');
    const row = await findAuditRow(services.broker.store.db, who.agent.organisation_id, done.answer.auditId);
    return present(row, 'row of a call that was answered');
  } finally {
    lease.release();
  }
}

async function signToken({ agent_id, owner_id, private_key }: Profile, now: Instant): Promise<string> {
  const seconds = Math.floor(now / 1000);
  return await new SignJWT({ agent_id, owner_id })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuedAt(seconds)
    .setExpirationTime(seconds + TOKEN_SECONDS)
    .sign(await importPKCS8(private_key, 'RS256'));
}

/** Files the report that a refusal suggests. Returns the report's id. */
async function report(
  broker: Pick<Broker, 'clock' | 'store'>,
  agent: AgentTable,
  row: AuditRow,
): Promise<string | undefined> {
  if (row.result !== 'denied') return undefined;
  const stored = await storeReport(broker, agent, {
    message: `I wanted to close issue 1, and was refused. Is that meant? ${STARTED_BY}`,
    severity: 'info',
    code: row.reason,
    platform: SANDBOX_PLATFORM,
    endpoint: CHANGE.endpoint,
    correlation_id: row.correlation_id,
    context: null,
  });
  return stored?.id;
}

async function waitingRefund(broker: Pick<Broker, 'clock' | 'store'>, agent: AgentTable): Promise<string | undefined> {
  const { pending } = await listOwnApprovals(broker, agent);
  return pending.find(
    ({ platform_id, method, path }) =>
      platform_id === SANDBOX_PLATFORM && method === REFUND.method && path === REFUND.endpoint,
  )?.id;
}
