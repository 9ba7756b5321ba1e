/**
 * Describes what a caller of `/proxy` or `/git` can do next, by its kind and by the refusal. Kept in one file, because callers have different means:
 * the command of a run holds no key, and a static key cannot request access.
 */
import { GIT_PLATFORM } from '../git/git-call.ts';
import type { Context } from './route.ts';

/**
 * `run`: comes through the sidecar of `agent-broker run`, which signs. `static_key`: uses a static key. `token`: signs, or has a token. It selects
 * the wording only and is no authentication, because any client can claim to be a sidecar.
 */
type CallerKind = 'run' | 'static_key' | 'token';

export type Caller = { kind: CallerKind; agentId: string; baseUrl: string };

/** The header that the sidecar sets (mcp/sidecar/entry.ts). */
const VIA = 'x-svc-via';

export const callerOf = ({
  services,
  request,
  who,
}: Pick<Context<'raw' | 'git'>, 'services' | 'request' | 'who'>): Caller => ({
  kind: who.staticKey ? 'static_key' : request.headers[VIA] === 'run' ? 'run' : 'token',
  agentId: who.agent.agent_id,
  baseUrl: services.broker.baseUrl,
});

/** The platform and scope of a possible access request, as far as known. */
export type Wanted = { platform?: string | undefined; scope?: string | undefined };

const AFTER: Readonly<Record<string, string>> = {
  endpoint_scope_mismatch: 'Use an endpoint that the platform’s manifest names, or ask an owner to add it.',
  denied_by_policy: 'Nothing was sent. Do not repeat it; an owner can change the policy.',
  denied_by_guardrail: 'Nothing was sent. Do not repeat it; an owner can change the guardrail.',
};

/** What owners can do, for refusals that a grant does not lift. */
const VERBS: Readonly<Record<string, string>> = {
  grant_expired: 'renew',
  denied_by_policy: 'allow',
  no_policy_assigned: 'allow',
};

/**
 * Returns the next step after a refusal of `/proxy`; undefined where the refusal's detail contains it already.
 *
 * @param code code of the refusal, or its reason
 * @param wanted what an access request could ask for; undefined: a request would not help
 */
export function afterRefusal(code: string, caller: Caller, wanted: Wanted | undefined): string | undefined {
  if (wanted === undefined) return AFTER[code];
  const can = `An owner can ${VERBS[code] ?? 'grant'} it`;
  switch (caller.kind) {
    case 'run':
      return `${can}. Ask with POST /v1/access-request at AGENT_BROKER_RUN_URL, with AGENT_BROKER_RUN_KEY as the bearer, or run: ${commandFor(wanted)}`;
    case 'static_key':
      return `${can}, at ${pageOf(caller)}; a static key cannot ask for it.`;
    case 'token': {
      const named = Object.entries(wanted).flatMap(([name, value]) => (value ? [`${name} ${value}`] : []));
      return `${can}; ask with POST ${caller.baseUrl}/v1/access-request${named.length > 0 ? ` (${named.join(', ')})` : ''}.`;
    }
  }
}

/** Returns the next step after a refusal of `/git`, for a person at a terminal. */
export const afterGitRefusal = (code: string, caller: Caller, scope: string | undefined): string =>
  `Ask an owner to ${VERBS[code] ?? 'grant'} it, at ${pageOf(caller)}, or run: ${commandFor({ platform: GIT_PLATFORM, scope })}`;

/** Says where the answer to a held read will be available: sending the same read again does not join the held call. */
export function afterHeldRead({ kind, baseUrl }: Caller, approvalId: string): string {
  const again = 'sending the same request again creates another call, which needs its own approval';
  const path = `/v1/approvals/${approvalId}`;
  switch (kind) {
    case 'run':
      return `The answer will be at ${path} of AGENT_BROKER_RUN_URL, with AGENT_BROKER_RUN_KEY as the bearer; ${again}.`;
    case 'static_key':
      return `The response cannot be read later with a static key, and ${again}: send the request with "X-Svc-Wait: 120" at a time when somebody can decide.`;
    case 'token':
      return `The answer will be at ${baseUrl}${path}; ${again}.`;
  }
}

/** Returns the page where owners grant access. It shows nothing without a session. */
const pageOf = ({ baseUrl, agentId }: Caller): string => `${baseUrl}/console/agents/${agentId}`;

const commandFor = ({ platform = '<platform>', scope }: Wanted): string =>
  `npx agent-broker request-access ${platform}${scope ? ` ${scope}` : ''}`;
