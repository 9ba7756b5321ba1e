/**
 * What a caller of `/proxy` or `/git` can do next: by how it came, and by what it was refused for. No other file says so, because what one
 * caller can do another one cannot: the command of a run holds no key, and a static key asks for nothing.
 */
import { GIT_PLATFORM } from '../git/git-call.ts';
import type { Context } from './route.ts';

/**
 * `run`: by the sidecar of `agent-broker run`, which signs. `static_key`: by the credential that it showed. `token`: it signs, or has a token.
 * It decides what is told and nothing else, because anybody may say that they come by a sidecar.
 */
type Door = 'run' | 'static_key' | 'token';

export type Caller = { door: Door; agentId: string; baseUrl: string };

/** As the sidecar sets it (mcp/sidecar/entry.ts). */
const VIA = 'x-svc-via';

export const callerOf = ({
  services,
  request,
  who,
}: Pick<Context<'raw' | 'git'>, 'services' | 'request' | 'who'>): Caller => ({
  door: who.staticKey ? 'static_key' : request.headers[VIA] === 'run' ? 'run' : 'token',
  agentId: who.agent.agent_id,
  baseUrl: services.broker.baseUrl,
});

/** What an access request would be for, as far as it is known. */
export type Wanted = { platform?: string | undefined; scope?: string | undefined };

const AFTER: Readonly<Record<string, string>> = {
  endpoint_scope_mismatch: 'Use an endpoint that the platform’s manifest names, or ask an owner to add it.',
  denied_by_policy: 'Nothing was sent. Do not repeat it; an owner can change the policy.',
  denied_by_guardrail: 'Nothing was sent. Do not repeat it; an owner can change the guardrail.',
};

/** What owners do about it, where it is not to grant it. */
const VERBS: Readonly<Record<string, string>> = {
  grant_expired: 'renew',
  denied_by_policy: 'allow',
  no_policy_assigned: 'allow',
};

/**
 * After a refusal of `/proxy`; undefined where its detail says it already.
 *
 * @param code of the refusal, or its reason
 * @param wanted what an access request may get; undefined: none would help
 */
export function afterRefusal(code: string, caller: Caller, wanted: Wanted | undefined): string | undefined {
  if (wanted === undefined) return AFTER[code];
  const can = `An owner can ${VERBS[code] ?? 'grant'} it`;
  switch (caller.door) {
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

/** The same of `/git`, where somebody reads it at a terminal. */
export const afterGitRefusal = (code: string, caller: Caller, scope: string | undefined): string =>
  `Ask an owner to ${VERBS[code] ?? 'grant'} it, at ${pageOf(caller)}, or run: ${commandFor({ platform: GIT_PLATFORM, scope })}`;

/** Where the answer to a held read will be: the same read again joins no held call. */
export function afterHeldRead({ door, baseUrl }: Caller, approvalId: string): string {
  const again = 'the same request again would be another call, which needs an approval of its own';
  const path = `/v1/approvals/${approvalId}`;
  switch (door) {
    case 'run':
      return `The answer will be at ${path} of AGENT_BROKER_RUN_URL, with AGENT_BROKER_RUN_KEY as the bearer; ${again}.`;
    case 'static_key':
      return `A static key cannot read its answer later, and ${again}: send it with "X-Svc-Wait: 120" when somebody can decide meanwhile.`;
    case 'token':
      return `The answer will be at ${baseUrl}${path}; ${again}.`;
  }
}

/** Where owners grant. Who is not signed in there is told nothing. */
const pageOf = ({ baseUrl, agentId }: Caller): string => `${baseUrl}/console/agents/${agentId}`;

const commandFor = ({ platform = '<platform>', scope }: Wanted): string =>
  `npx agent-broker request-access ${platform}${scope ? ` ${scope}` : ''}`;
