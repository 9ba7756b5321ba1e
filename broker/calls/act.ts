/** The governed call from door to door (specification, Governed call; architecture, The way of a governed call). */
import { uuidv7 } from '../crypto/ids.ts';
import { decide } from '../decision/decide.ts';
import { parseEndpoint } from '../decision/endpoint.ts';
import type { Ask, Instant, JsonObject, Verdict } from '../decision/facts.ts';
import { classify } from '../decision/operation.ts';
import type { AgentPrincipal } from '../identity/principal.ts';
import { filterAgentHeaders } from '../outbound/request-headers.ts';
import { platformHeaderNames } from '../outbound/rest.ts';
import { moveAgent } from '../store/agents.ts';
import type { Action } from '../wire/action.ts';
import { countFailure, takeTrials } from './breakers.ts';
import { beginRow, type Call, noteFlags, noteVerdict } from './call.ts';
import { conclude } from './conclude.ts';
import { type LoadedFacts, loadFacts } from './facts.ts';
import { forward, MCP_UNSUPPORTED, restPlatform } from './forward.ts';
import type { Governor } from './governor.ts';
import { hold } from './hold.ts';
import type { Outcome } from './outcome.ts';
import type { Recorded } from './record.ts';

/** `now`: the moment at which the call is decided. */
export type ActOptions = { correlationId: string; auditId?: string; now?: Instant };

/**
 * Decides, and holds, refuses or makes the call. Every answer is recorded before it is given; throws AuditUnavailable
 * when it cannot be.
 */
export async function act(
  governor: Governor,
  who: AgentPrincipal,
  action: Action,
  { correlationId, now = governor.broker.clock(), auditId = uuidv7(now) }: ActOptions,
): Promise<Recorded<Outcome>> {
  const { broker, recorder } = governor;
  const row = beginRow(who, action, { auditId, correlationId }, broker);
  const loaded = await loadFacts(broker, governor.compiled, who.rows, action.platform, now);
  const read = readCall(action, loaded);
  if (!read.ok) {
    row.result = 'errored';
    row.reason = read.code;
    row.detail = read.detail;
    await countFailure(broker, who, 'breaker_api_error', action.platform);
    return await recorder.finish(
      row,
      { kind: 'invalid', auditId: row.id, code: read.code, detail: read.detail },
      false,
    );
  }
  const call: Call = { who, action, ...read.call, row };
  row.path = call.path;
  const verdict = await decideCall(governor, call, loaded, now);
  noteVerdict(row, verdict, loaded);
  if (verdict.kind === 'deny') return await refuse(governor, call, verdict);
  if (loaded.platform?.manifest.kind === 'mcp') {
    row.result = 'blocked';
    row.reason = 'platform_not_connected';
    row.detail = MCP_UNSUPPORTED;
    return await recorder.finish(row, { kind: 'not_connected', auditId: row.id, why: MCP_UNSUPPORTED }, false);
  }
  // One token per person, and we hold none of this person's: never fall back to the shared one.
  if (loaded.platform?.manifest.per_person?.enabled) {
    const reason = whyNoPersonalToken(action, loaded.platform.manifest.per_person.asserted ?? []);
    row.result = 'blocked';
    row.reason = 'consent_required';
    return await recorder.finish(row, { kind: 'consent_required', auditId: row.id, reason }, false);
  }
  const connection = verdict.grant && loaded.connections.get(verdict.grant.id);
  const basic = loaded.platform?.manifest.auth.type === 'basic';
  const credential = connection && governor.credentials.open(who.agent.organisation_id, connection, basic);
  row.connection_id = connection?.id ?? null;
  if (credential === 'unreadable') {
    row.result = 'errored';
    row.reason = 'credential_unreadable';
    return await recorder.finish(row, { kind: 'credential_unreadable', auditId: row.id }, false);
  }
  if (!connection || !credential || !loaded.platform) {
    row.result = 'blocked';
    row.reason = 'platform_not_connected';
    return await recorder.finish(row, { kind: 'not_connected', auditId: row.id }, false);
  }
  const { manifest } = loaded.platform;
  const needed = manifest.needs?.[action.scope];
  if (needed && connection.upstreamScopes && !needed.some((scope) => connection.upstreamScopes!.includes(scope))) {
    row.result = 'blocked';
    row.reason = 'needs_consent';
    return await recorder.finish(row, { kind: 'needs_consent', auditId: row.id }, false);
  }
  if (verdict.kind === 'hold') return await hold(governor, call, verdict.detail);
  return await recorder.intend(row, async () => {
    const forwarded = await forward(broker, manifest, call, connection, credential);
    return await conclude(governor, call, loaded, connection, forwarded);
  });
}

type Read =
  | { ok: true; call: Pick<Call, 'path' | 'query' | 'headers' | 'dropped'> }
  | { ok: false; code: 'invalid_endpoint' | 'invalid_headers' | 'invalid_request'; detail: string };

/** What can be said of a request without deciding: its endpoint, its headers, its GraphQL document. */
function readCall(action: Action, { platform }: LoadedFacts): Read {
  const endpoint = parseEndpoint(action.endpoint, { allowEncodedSlash: platform?.rules.allowEncodedSlash ?? false });
  if (!endpoint.ok) return { ok: false, code: 'invalid_endpoint', detail: `endpoint: ${endpoint.error}` };
  if (action.method === 'GET' && action.data !== undefined)
    return {
      ok: false,
      code: 'invalid_request',
      detail: 'data: a GET carries none; put parameters into the query of the endpoint',
    };
  const names = platform ? platformHeaderNames(restPlatform(platform.manifest)) : new Set<string>();
  const headers = action.headers
    ? filterAgentHeaders(action.headers, names)
    : { ok: true as const, headers: {}, dropped: [] };
  if (!headers.ok) return { ok: false, code: 'invalid_headers', detail: headers.error };
  const call = { path: endpoint.path, query: endpoint.query, headers: headers.headers, dropped: headers.dropped };
  if (platform && (platform.rules.kind === 'graphql' || endpoint.path === platform.rules.graphqlPath)) {
    const classified = classify(platform.rules, askOf(action, call).call!);
    if (classified.kind === 'malformed')
      return { ok: false, code: 'invalid_request', detail: `data: ${classified.error}` };
  }
  return { ok: true, call };
}

function askOf(action: Action, call: Pick<Call, 'path' | 'query' | 'headers'>): Ask {
  return {
    platformId: action.platform,
    scope: action.scope,
    ...(action.connection_id !== undefined && { connectionId: action.connection_id }),
    call: {
      method: action.method,
      path: call.path,
      query: call.query,
      headers: call.headers,
      body: action.data as JsonObject | undefined,
    },
  };
}

/** `asserted`: the sources whose word for who somebody is is taken. Assertions always are. */
function whyNoPersonalToken({ caller }: Action, asserted: readonly string[]) {
  if (caller === undefined) return 'no_caller';
  return 'source' in caller && !asserted.includes(caller.source) ? 'asserted_not_allowed' : 'not_consented';
}

/** Decides, and takes the trial of a half-open breaker for a call that would go. */
async function decideCall(governor: Governor, call: Call, { facts }: LoadedFacts, now: Instant): Promise<Verdict> {
  const { broker } = governor;
  const ask = askOf(call.action, call);
  const verdict = decide(facts, ask, now);
  if (verdict.kind !== 'allow' || facts.breakers.length === 0) return verdict;
  if (await takeTrials(broker, call.who, facts.breakers, call.action.platform, now)) return verdict;
  return decide({ ...facts, breakers: facts.breakers.map((breaker) => ({ ...breaker, trialFree: false })) }, ask, now);
}

async function refuse(
  governor: Governor,
  call: Call,
  verdict: Extract<Verdict, { kind: 'deny' }>,
): Promise<Recorded<Outcome>> {
  const { broker, recorder } = governor;
  const { row, who } = call;
  row.result = 'denied';
  noteFlags(row, { dropped_headers: call.dropped.length > 0 ? call.dropped : undefined });
  if (verdict.suspend) {
    const move = {
      from: ['active'] as const,
      to: 'suspended' as const,
      cause: 'suspended_by_policy' as const,
      detail: `guardrail ${verdict.suspend.guardrail}`,
    };
    const agent = { organisationId: who.agent.organisation_id, id: who.agent.id };
    await moveAgent(broker.store.db, agent, move, broker.clock());
  }
  if (verdict.reason === 'agent_inactive')
    return await recorder.finish(row, { kind: 'inactive', auditId: row.id, detail: verdict.detail }, false);
  return await recorder.finish(row, { kind: 'denied', auditId: row.id, verdict }, false);
}
