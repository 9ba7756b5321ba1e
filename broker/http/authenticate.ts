/** Authenticates a request by what its route accepts: a bearer, a browser's cookie, or nothing. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import { ROLE_RANKS } from '../audit/author-role.ts';
import { claimsAgent } from '../auth/authenticate-agent.ts';
import { isOwnersToken } from '../auth/authenticate-owner.ts';
import { claimsPipeline, refuseOtherPipelineAudience } from '../auth/authenticate-pipeline.ts';
import { STATIC_KEY_ELSEWHERE } from '../auth/authenticate-static-key.ts';
import { readBasic } from '../auth/basic.ts';
import { kindOf, readBearer, sendsBearer } from '../auth/bearer.ts';
import type { AskedPlatform, AuthRefusal, OwnerPrincipal, Principal, ProviderUnavailable } from '../auth/principal.ts';
import { readRawToken } from '../auth/raw-token.ts';
import { foreignRequest, readSessionCookie } from '../auth/session-cookie.ts';
import { mcpChallenge } from '../oauth-server/metadata.ts';
import type { Services } from '../services.ts';
import { bearerChallenge } from './bearer-challenge.ts';
import { Refusal } from './errors.ts';
import { refusePlainHttp } from './plain-http.ts';
import type { RefusedBearers } from './refused-bearers.ts';
import { OWNERS, type Route } from './route.ts';

const PIPELINE_ELSEWHERE: AuthRefusal = {
  kind: 'refused',
  code: 'invalid_token',
  detail: 'A pipeline plans, applies and exports governance files, and does nothing else.',
};

const OWNER_ELSEWHERE: AuthRefusal = {
  kind: 'refused',
  code: 'invalid_token',
  detail:
    'This is the session of an owner, which is not accepted here. Send a token that the agent signed with its own key, or the bearer of a child identity.',
};

const AGENTS_ALONE: ReadonlySet<Route['auth']> = new Set<Route['auth']>(['agent', 'mcp_client', 'git', 'raw']);

/**
 * Returns the principal; undefined where the route requires none. Throws Refusal: 401, 403 (also to MCP clients over plain http), 429 where too many
 * bearers from this address were refused, or 502 when the identity provider is unavailable.
 */
export async function authenticate(
  route: Route,
  { services, bearers }: { services: Services; bearers: RefusedBearers },
  request: Request,
  platform: AskedPlatform,
  source: string,
): Promise<Principal | undefined> {
  if (route.auth === 'none' || isStranger(route, request)) return undefined;
  const token = tokenOf(route, request, services);
  const who = await recognise(route, { services, bearers }, token, platform, source);
  if (who.kind === 'refused') throw unauthenticated(who, route.auth === 'git' ? 'git' : challengeOf(route, services));
  if (who.kind === 'unavailable')
    throw new Refusal('identity_provider_failed', who.detail, { headers: { 'Retry-After': '30' } });
  if (who.kind === 'owner') refuseOtherOwner(request, who);
  if ((who.kind === 'owner' || who.kind === 'pipeline') && ROLE_RANKS[who.role] < ROLE_RANKS[route.role ?? 'viewer'])
    throw new Refusal('forbidden', `This needs the role ${route.role}; yours is ${who.role}. Ask an admin.`);
  return who;
}

/**
 * Refuses a request that a page of another owner sends: all tabs of a browser share its session, so after a sign-in in one of them the others would
 * read and decide as an owner whom they do not show.
 */
function refuseOtherOwner({ headers }: Request, { owner }: OwnerPrincipal): void {
  const meant = headers['x-svc-owner'];
  if (meant === undefined || meant === owner.id) return;
  throw new Refusal(
    'forbidden',
    `This page is of another owner or organisation: the browser is signed in as ${owner.email} by now. Load the page again.`,
    { extra: { signed_in_as: owner.email } },
  );
}

/** Whether a request to a route for `anyone` is anonymous: an Authorization header with another scheme than Bearer is ignored there. */
export const isStranger = (route: Route, request: Request): boolean => route.auth === 'anyone' && !sendsBearer(request);

/** Returns the bearer; for git the password; for owners without a bearer the session cookie of a browser. */
function tokenOf(route: Route, request: Request, services: Services): string {
  const { baseUrl } = services.broker;
  if (route.auth === 'git') return passwordOf(request);
  if (route.auth === 'raw') return rawTokenOf(request);
  const bearer = readBearer(request);
  // Tokens of the authorization server are accepted over https only; agents' own tokens wherever `/v1` accepts them.
  if (route.auth === 'mcp_client' && !(bearer.kind === 'bearer' && claimsAgent(baseUrl, bearer.token)))
    refusePlainHttp(services.broker);
  if (bearer.kind === 'bearer') return bearer.token;
  if (bearer.kind === 'twice') throw new Refusal('invalid_request', 'Send exactly one Authorization header.');
  const takesCookie = OWNERS.has(route.auth) || route.auth === 'agent_or_owner';
  const session = takesCookie && bearer.code === 'missing_token' ? readSessionCookie(request, baseUrl) : undefined;
  if (session === undefined) throw unauthenticated(bearer, challengeOf(route, services));
  const foreign = foreignRequest(request, baseUrl);
  if (foreign !== undefined) throw new Refusal('forbidden', foreign);
  return session;
}

function passwordOf(request: Request): string {
  const read = readBasic(request);
  if (read.kind === 'basic') return read.password;
  if (read.kind === 'twice') throw new Refusal('invalid_request', 'Send exactly one Authorization header.');
  throw unauthenticated(read, 'git');
}

function rawTokenOf(request: Request): string {
  const read = readRawToken(request);
  if (read.kind === 'token') return read.token;
  if (read.kind === 'twice') throw new Refusal('invalid_request', 'Send exactly one Authorization header.');
  throw unauthenticated(read, []);
}

async function recognise(
  route: Route,
  { services, bearers }: { services: Services; bearers: RefusedBearers },
  token: string,
  platform: AskedPlatform,
  source: string,
): Promise<Principal | AuthRefusal | ProviderUnavailable> {
  if (kindOf(token) === 'static_key') {
    if (route.auth !== 'raw' || typeof platform !== 'string') return STATIC_KEY_ELSEWHERE;
    return await bearers.check(token, source, () => services.authenticateStaticKey(token, platform, source));
  }
  if (route.auth === 'local')
    return (
      services.local.matches(token) ?? {
        kind: 'refused',
        code: 'invalid_token',
        detail: "This needs the command line's local credential.",
      }
    );
  const local = route.auth === 'owner_or_local' ? services.local.matches(token) : undefined;
  if (local) return local;
  if (route.auth === 'mcp_client' && !claimsAgent(services.broker.baseUrl, token))
    return await services.authenticateMcpClient(token, source);
  const asAgent = () => bearers.check(token, source, () => services.authenticateAgent(token, platform, source));
  if (AGENTS_ALONE.has(route.auth)) {
    const who = await asAgent();
    // A provider's token may be one of a workload, so only a session of this broker is an owner's for certain.
    const isSession = who.kind === 'refused' && isOwnersToken(services.broker.baseUrl, undefined, token);
    return isSession ? OWNER_ELSEWHERE : who;
  }
  const orAgent = route.auth === 'agent_or_owner' || route.auth === 'anyone';
  if (orAgent && !isOwnersToken(services.broker.baseUrl, services.provider, token)) return await asAgent();
  if (OWNERS.has(route.auth) && claimsPipeline(services.broker.baseUrl, token))
    return route.auth === 'owner_or_pipeline' ? await services.authenticatePipeline(token) : PIPELINE_ELSEWHERE;
  const who = await services.authenticateOwner(token);
  // A token of the identity provider is refused as such.
  const mayBePipelines =
    route.auth === 'owner_or_pipeline' && !isOwnersToken(services.broker.baseUrl, services.provider, token);
  return (
    (who.kind === 'refused' && mayBePipelines && refuseOtherPipelineAudience(services.broker.baseUrl, token)) || who
  );
}

/**
 * RFC 6750 section 3: no error code when no credential was presented. `where`: how to get a token. git is asked for a password only when it sent none
 * (specification, Governed git).
 */
function unauthenticated(refused: AuthRefusal, where: readonly string[] | 'git'): Refusal {
  if (where === 'git')
    return new Refusal(refused.code, refused.detail, {
      headers: refused.code === 'missing_token' ? { 'WWW-Authenticate': 'Basic realm="agent-broker"' } : {},
    });
  const parts = [...(refused.code === 'missing_token' ? [] : ['error="invalid_token"']), ...where];
  return new Refusal(refused.code, refused.detail, { headers: bearerChallenge(...parts) });
}

const challengeOf = ({ auth }: Route, { broker }: Services): readonly string[] =>
  auth === 'mcp_client' ? mcpChallenge(broker) : [];

/** Returns the trace context that an authenticated caller sends (W3C Trace Context). How far it is trusted is decided where traces begin. */
export const traceparentOf = ({ traceparent }: IncomingHttpHeaders): string | undefined =>
  typeof traceparent === 'string' ? traceparent : undefined;
