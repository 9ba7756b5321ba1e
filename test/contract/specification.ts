/**
 * The routes and statuses of the specification, transcribed by hand from its headings Endpoints and Discovery and health. An independent source for
 * the contract test: never generated from the code, nor from the document that the code generates.
 */

/** `A`: agent JWT, `O`: owner JWT, `none`: without authentication. `basic`: the agent JWT as the password (Governed git). */
export type SpecAuth = 'A' | 'O' | 'none' | 'A or O' | 'none, A or O' | 'basic';

export type SpecRoute = {
  method: 'GET' | 'POST';
  path: string;
  auth: SpecAuth;
  statuses: readonly number[];
  /** Media types of the 2xx answer when it is not only JSON, including alternatives by Accept. */
  types?: readonly string[];
  /** The media type of errors when it is not JSON. */
  errors?: 'application/problem+json' | 'text/plain';
  /** Headers of the 2xx answer that the specification fixes. */
  headers?: Readonly<Record<string, string | RegExp>>;
};

const spec = (
  line: `${'GET' | 'POST'} /${string}`,
  auth: SpecAuth,
  statuses: readonly number[],
  more: Pick<SpecRoute, 'types' | 'errors' | 'headers'> = {},
): SpecRoute => {
  const [method, path] = line.split(' ') as ['GET' | 'POST', string];
  return { method, path, auth, statuses, ...more };
};

const PROBLEM = { errors: 'application/problem+json' } as const;
const LINE = { errors: 'text/plain' } as const;

export const SPECIFICATION: readonly SpecRoute[] = [
  // Governed call
  spec('POST /v1/actions', 'A', [200, 202, 400, 401, 403, 409, 412, 502]),
  // Per-person consent
  spec('POST /v1/consent/caller/start', 'A', [202, 400, 401, 402, 409, 429]),
  spec('GET /v1/consent/caller/status/{token}', 'none', [200, 404]),
  // Permissions and authorization queries
  spec('GET /v1/agent/permissions', 'A', [200, 304, 401, 403], { headers: { etag: /^".+"$/ } }),
  spec('POST /v1/authzen/access', 'A or O', [200, 400, 401], PROBLEM),
  spec('POST /v1/trqp/authorization', 'none, A or O', [200, 400, 401, 429], PROBLEM),
  spec('POST /v1/trqp/recognition', 'none, A or O', [200, 400, 401, 429], PROBLEM),
  // Agent identity and self-service
  spec('GET /v1/agents/me', 'A', [200, 401, 404, 429]),
  spec('GET /v1/agents/me/pending-actions', 'A', [200, 401, 429]),
  spec('POST /v1/agents/children', 'A', [201, 400, 401, 403, 409, 503]),
  spec('POST /v1/agents/self/diagnostics', 'A', [201, 400, 401, 413, 429]),
  // Approvals and access requests
  spec('GET /v1/approvals/{id}', 'A', [200, 400, 401, 404, 429]),
  spec('POST /v1/access-request', 'A', [200, 202, 400, 401, 403, 404, 409, 429]),
  spec('GET /v1/access-request/status/{token}', 'A', [200, 401, 403, 404]),
  // Registration and binding
  spec('POST /v1/register', 'none', [202, 400]),
  spec('GET /v1/register/status/{token}', 'none', [200, 404]),
  spec('POST /v1/register/approve/{token}', 'O', [200, 401, 403, 404]),
  spec('POST /v1/register/reject/{token}', 'O', [200, 401, 403, 404]),
  spec('GET /v1/register/stream/{token}', 'none', [200, 404], { types: ['text/event-stream'] }),
  spec('GET /v1/register/claim-key/{token}', 'none', [200, 404, 409, 410]),
  spec('POST /v1/agents/bind', 'none', [200, 400, 410, 429]),
  spec('POST /v1/invites/bind', 'none', [200, 400, 410, 429]),
  spec('POST /v1/bind-secret', 'none', [200, 400]),
  // Passkeys (WebAuthn)
  spec('POST /v1/approvals/passkeys/register/begin', 'O', [200, 401, 429]),
  spec('POST /v1/approvals/passkeys/register/finish', 'O', [200, 400, 401, 409, 410, 429]),
  spec('POST /v1/approvals/passkeys/sign/begin', 'none', [200, 400, 404, 429]),
  spec('POST /v1/approvals/passkeys/sign/finish', 'none', [200, 400, 404, 409, 410, 429]),
  // Audit receipts
  spec('GET /v1/audit/{id}/receipt', 'A or O', [200, 401, 404], { types: ['application/json', 'application/jose'] }),
  // Governed git (smart HTTP)
  spec('GET /git/{owner}/{repo}/info/refs', 'basic', [200, 401, 403, 412, 502], {
    ...LINE,
    types: ['application/x-git-upload-pack-advertisement', 'application/x-git-receive-pack-advertisement'],
  }),
  spec('POST /git/{owner}/{repo}/git-upload-pack', 'basic', [200, 401, 403, 412, 413, 502], {
    ...LINE,
    types: ['application/x-git-upload-pack-result'],
  }),
  spec('POST /git/{owner}/{repo}/git-receive-pack', 'basic', [200, 401, 403, 412, 413, 502], {
    ...LINE,
    types: ['application/x-git-receive-pack-result'],
  }),
  // Discovery and health
  spec('GET /health', 'none', [200]),
  spec('GET /version', 'none', [200], { headers: { 'cache-control': 'no-store' } }),
  spec('GET /v1/openapi.json', 'none', [200]),
  spec('GET /.well-known/did.json', 'none', [200, 404, 429], { types: ['application/did+json'] }),
  spec('GET /agents/{agentId}/did.json', 'none', [200, 404, 410, 429], {
    types: ['application/did+json'],
    headers: { 'cache-control': 'public, max-age=60', 'access-control-allow-origin': '*' },
  }),
  spec('GET /.well-known/svc-receipt-keys.json', 'none', [200, 404], {
    headers: { 'cache-control': 'public, max-age=3600' },
  }),
  spec('GET /.well-known/svc-attestation', 'none', [200]),
  spec('GET /v1/oauth/jwks.json', 'none', [200], { headers: { 'cache-control': 'public, max-age=300' } }),
  spec('GET /.well-known/oauth-authorization-server', 'none', [200]),
  spec('GET /.well-known/oauth-protected-resource', 'none', [200]),
  spec('GET /.well-known/aa-agent-schema', 'none', [200]),
  spec('GET /.well-known/authzen-configuration', 'none', [200]),
  spec('GET /llms.txt', 'none', [200], { types: ['text/plain'] }),
  spec('GET /agent-manifest.json', 'none', [200]),
  spec('POST /lab/mcp', 'none', [200, 429], { types: ['application/json', 'text/event-stream'] }),
];

/** Matches paths without a public contract (What the service does; Versioning). */
export const NEVER_DOCUMENTED =
  /billing|stripe|invoice|checkout|webhook|callback|admin|\/owner|\/console|\/sandbox|\/notify/i;
