/** Parses a request into a call, in the same way for every entry point and for simulations. */
import { namedByManifest, sentHeaders } from '../egress/client-headers.ts';
import { formProblem } from '../egress/credential-search/form.ts';
import { namedHeaders, refusedHeader, withheldHeaders } from '../egress/refused-headers.ts';
import { type FilteredHeaders, filterAgentHeaders } from '../egress/request-headers.ts';
import { platformHeaderNames } from '../egress/rest.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import { parseEndpoint } from '../policy/endpoint.ts';
import { type Ask, type CallAsk, type JsonObject, UnreadBody } from '../policy/facts.ts';
import { foldName } from '../policy/names.ts';
import { classify } from '../policy/operation.ts';
import type { Parsing } from '../runtime/long-bodies.ts';
import { present } from '../runtime/present.ts';
import type { Action } from '../wire/action.ts';
import { type ReadBody, readActionBody } from './action-body.ts';
import type { Call } from './call.ts';
import { restPlatform } from './forward.ts';
import { isFormType } from './judge-body.ts';
import { methodMemberInTurns } from './method-json.ts';
import { isLong, type RawRequest } from './raw-request.ts';

/** The parsed call, or why the request is malformed, worded for a 400. */
export type ReadCall =
  | { ok: true; call: Pick<Call, 'path' | 'query' | 'headers' | 'given'> & { dropped: readonly string[] } }
  | {
      ok: false;
      code: 'invalid_endpoint' | 'invalid_headers' | 'invalid_request' | 'payload_too_large';
      detail: string;
    };

/** Headers that an MCP client sets for itself and its session: towards the server, the broker is that client. */
const MCP_HEADERS = ['accept', 'last-event-id'].map(foldName);
const OF_MCP_SESSION = ['mcp-*'];

/** Parses what can be known without deciding: endpoint, headers, GraphQL document. */
export async function readCall(
  action: Action,
  { platform }: LoadedFacts,
  { isGit, raw, parsing }: { isGit: boolean; raw?: RawRequest | undefined; parsing: Parsing },
): Promise<ReadCall> {
  const endpoint = parseEndpoint(action.endpoint, platform?.rules);
  if (!endpoint.ok) return { ok: false, code: 'invalid_endpoint', detail: `endpoint: ${endpoint.error}` };
  if (!isGit && platform && isGitService(platform.manifest, endpoint.path))
    return {
      ok: false,
      code: 'invalid_endpoint',
      detail:
        'endpoint: it is a service of git, which a call does not reach; clone, fetch and push from /git/<owner>/<repo> with git',
    };
  if (action.method === 'GET' && action.data !== undefined)
    return {
      ok: false,
      code: 'invalid_request',
      detail: 'data: a GET carries none; put parameters into the query of the endpoint',
    };
  const isMcp = platform?.rules.kind === 'mcp';
  if (isMcp && endpoint.query !== '')
    return {
      ok: false,
      code: 'invalid_endpoint',
      detail: 'endpoint: a call of a tool cannot have a query; its arguments go into `data`',
    };
  if (raw && isMcp)
    return { ok: false, code: 'invalid_endpoint', detail: 'endpoint: an MCP server is reached by its tools, at /mcp' };
  const headers = readHeaders(action, platform, raw !== undefined);
  if (!headers.ok) return { ok: false, code: 'invalid_headers', detail: headers.error };
  const body: ReadBody =
    raw || (action.data === undefined && action.encoding === undefined)
      ? { ok: true, given: undefined }
      : await readActionBody(action, endpoint.path, platform, parsing);
  if (!body.ok) return { ok: false, code: 'invalid_request', detail: body.detail };
  const { given } = body;
  // The body of a raw request, and of bytes, was searched for a method when it was read.
  const members = !raw && !given && !isMcp && platform ? (action.data as JsonObject | undefined) : undefined;
  const refused = platform?.rules.refused.body;
  const judged = refused ? (members ?? membersIn((raw ?? given)?.judged)) : members;
  const isForm = platform?.manifest.body === 'form';
  const problem =
    (members && isForm ? formProblem(members) : undefined) ??
    (judged && (!isForm || refused) ? await methodMemberInTurns(judged, parsing, refused) : undefined);
  if (problem !== undefined) return { ok: false, code: 'invalid_request', detail: raw ? problem : `data: ${problem}` };
  const saysType = given?.written.as === 'bytes';
  const dropped = headers.dropped.filter((name) => !(saysType && name === 'content-type'));
  const call = { path: endpoint.path, query: endpoint.query, headers: headers.headers, dropped, given };
  if (platform && (platform.rules.kind === 'graphql' || endpoint.path === platform.rules.graphqlPath)) {
    const classified = classify(platform.rules, present(askOf(action, { ...call, raw }).call, 'call'));
    if (classified.kind === 'malformed') {
      const code = raw && isLong(raw.body) ? 'payload_too_large' : 'invalid_request';
      return { ok: false, code, detail: `data: ${classified.error}` };
    }
  }
  return { ok: true, call };
}

const membersIn = (judged: JsonObject | UnreadBody | undefined): JsonObject | undefined =>
  judged instanceof UnreadBody ? undefined : judged;

/** Filters the headers of a call. `raw`: only headers that every platform takes, and those that the manifest names, are sent. */
function readHeaders(action: Action, platform: LoadedFacts['platform'], raw: boolean): FilteredHeaders {
  const { headers } = action;
  if (!headers) return { ok: true, headers: {}, dropped: [] };
  if (!platform) return filterAgentHeaders(raw ? sentHeaders(headers, []) : headers, new Set());
  const { manifest } = platform;
  const refused = refusedHeader(headers, action, manifest);
  if (refused !== undefined) return refusal(refused);
  const taken = platformHeaderNames(restPlatform(manifest));
  if (platform.rules.kind === 'mcp')
    return filterAgentHeaders(headers, new Set([...taken, ...MCP_HEADERS]), { withheld: OF_MCP_SESSION });
  const { default_headers: defaults = {} } = manifest;
  const sending = { withheld: withheldHeaders(headers, manifest), named: namedHeaders(manifest), defaults };
  if (!raw) return filterAgentHeaders(headers, taken, sending);
  const filtered = filterAgentHeaders(sentHeaders(headers, namedByManifest(manifest)), taken, sending);
  // Headers that a client's library adds are not worth a note in the row; the answer lists them (`unsentHeaders`).
  return filtered.ok ? { ...filtered, dropped: [] } : filtered;
}

const refusal = (name: string): FilteredHeaders => ({
  ok: false,
  error: `headers: ${JSON.stringify(name.slice(0, 100).toWellFormed())} may change what the call does, and this platform accepts it from no agent. Nothing was sent, because the call would do something else without it: leave it out, or ask an owner to allow it in the platform's entry (client_headers, refused_headers)`,
});

/** Builds the ask for the decision. */
export function askOf(
  action: Action,
  call: Pick<Call, 'path' | 'query' | 'headers' | 'git' | 'raw' | 'given' | 'caller'>,
): Ask & { call: CallAsk } {
  const { caller, raw, given } = call;
  return {
    platformId: action.platform,
    scope: action.scope,
    ...(action.connection_id !== undefined && { connectionId: action.connection_id }),
    call: {
      method: action.method,
      path: call.path,
      query: call.query,
      headers: call.headers,
      body: raw || given ? (raw ?? given)?.judged : (action.data as JsonObject | undefined),
      ...(raw?.judged && { isForm: isFormType(raw.bodyHeaders) }),
      ...(given && { isForm: given.isForm }),
      ...(call.git && { git: call.git.ask }),
      ...(caller && 'verified' in caller && { caller: { verified: caller.verified } }),
    },
  };
}

/** Only the git entry point reads which refs a push writes, so a call must not reach these paths. */
const GIT_SERVICE = /\/(?:info\/refs|git-(?:upload-pack|receive-pack|upload-archive))$|\.git\//i;

/**
 * Whether a call would reach a git service: by the paths of the broker's own /git routes, or below the address that repositories are cloned
 * from, when that is also below the API's address.
 *
 * @param path the endpoint's path, normalised
 */
export function isGitService(
  { base_url: baseUrl, git_base_url: gitUrl }: { base_url: string; git_base_url?: string | undefined },
  path: string,
): boolean {
  if (gitUrl === undefined) return false;
  // Normalise as the most lenient server would: escaped slashes, path parameters and trailing slashes.
  const plain = path
    .replaceAll(/%2f/gi, '/')
    .replaceAll(/;[^/]*/g, '')
    .replace(/\/+$/, '');
  if (!GIT_SERVICE.test(plain)) return false;
  if (/^\/git\//i.test(plain)) return true;
  // GitHub Enterprise Server has its API at /api/v3 of the same host: below /repos/ this is a file with that name.
  const isApart = !isBelow(gitUrl, baseUrl) && plain.startsWith('/repos/');
  return !isApart && isBelow(`${trimmed(baseUrl)}${plain}`, gitUrl);
}

const trimmed = (url: string): string => url.replace(/\/+$/, '');

function isBelow(url: string, base: string): boolean {
  const [inner, outer] = [URL.parse(url), URL.parse(base)];
  if (!inner || !outer || inner.origin !== outer.origin) return false;
  return `${inner.pathname}/`.startsWith(`${trimmed(outer.pathname)}/`);
}
