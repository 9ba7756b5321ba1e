/** The agent API in two short forms: for programs (/agent-manifest.json) and for language models (/llms.txt). */
import type { Broker } from '../broker.ts';
import { isSecureEnough } from '../oauth-server/metadata.ts';
import type { Guide } from './guides.ts';
import { INTERFACE_VERSION, operationId } from './openapi/document.ts';
import { AGENT_TAGS } from './openapi/tags.ts';
import type { Auth, Route } from './route.ts';

const NAME = 'Agent Broker';
const ABOUT =
  'A governance broker for AI agents: the agent names a platform, an endpoint, a method and a scope; the broker decides, holds the call for a person where it must, calls with a credential that the agent never sees, and leaves a signed receipt.';

/** Principals that can authenticate, in the words of the manifest; empty: none. */
const WHO: Record<Auth, readonly string[]> = {
  none: [],
  agent: ['agent'],
  git: ['agent'],
  raw: ['agent'],
  mcp_client: ['agent'],
  anyone: ['agent', 'owner'],
  owner: ['owner'],
  agent_or_owner: ['agent', 'owner'],
  owner_or_local: ['owner'],
  owner_or_pipeline: ['owner', 'pipeline'],
  local: [],
};

/** Whether unauthenticated requests are served, too, with less content. */
const isOptional = ({ auth }: Route): boolean => auth === 'anyone';

const describePrincipals = (route: Route): string =>
  [...WHO[route.auth], ...(isOptional(route) ? ['without authentication'] : [])].join(' or ') || 'no authentication';

/** Well-known addresses of documents. Only those that are served are listed. */
const DOCUMENTS = {
  openapi: '/v1/openapi.json',
  llms: '/llms.txt',
  did: '/.well-known/did.json',
  receipt_keys: '/.well-known/svc-receipt-keys.json',
  secret_keys: '/.well-known/svc-secret-keys.json',
  issuing_keys: '/v1/oauth/jwks.json',
  attestation: '/.well-known/svc-attestation',
  authzen: '/.well-known/authzen-configuration',
  oauth_authorization_server: '/.well-known/oauth-authorization-server',
  oauth_protected_resource: '/.well-known/oauth-protected-resource',
  agent_schema: '/.well-known/aa-agent-schema',
} as const;

/** Builds /agent-manifest.json. `routes`: those of the public surface. */
export function agentManifest(
  { baseUrl, proxyUrl }: Pick<Broker, 'baseUrl' | 'proxyUrl'>,
  routes: readonly Route[],
): Record<string, unknown> {
  const served = new Set(routes.map(({ path }) => path));
  const documents = Object.entries(DOCUMENTS).filter(
    ([name, path]) => served.has(path) && (isSecureEnough({ baseUrl }) || !name.startsWith('oauth_')),
  );
  return {
    name: NAME,
    description: ABOUT,
    version: INTERFACE_VERSION,
    base_url: baseUrl,
    proxy_base_url: proxyUrl,
    documentation: `${baseUrl}/docs`,
    documents: Object.fromEntries(documents.map(([name, path]) => [name, baseUrl + path])),
    authentication: {
      agent_token: {
        scheme: 'Bearer',
        format: 'JWT',
        algorithm: 'RS256',
        claims: ['agent_id', 'owner_id', 'iat', 'exp'],
        lifetime_seconds: 60,
        documentation: `${baseUrl}/docs/agents#the-agent-token`,
      },
    },
    capabilities: routes.map((route) => ({
      capability: route.capability,
      operation_id: operationId(route),
      method: route.method,
      path: route.path,
      summary: route.summary,
      authentication: WHO[route.auth],
      ...(isOptional(route) && { authentication_optional: true }),
      documentation: `${baseUrl}/docs#${route.capability}`,
    })),
  };
}

/** Builds /llms.txt in the form of llmstxt.org: a title, a description, and lists of links. */
export function llmsText(
  { baseUrl, proxyUrl }: Pick<Broker, 'baseUrl' | 'proxyUrl'>,
  routes: readonly Route[],
  guides: readonly Guide[],
): string {
  const elsewhere = proxyUrl === baseUrl ? '' : `; /git is at ${proxyUrl} instead`;
  const link = (name: string, to: string, about: string) =>
    `- [${name}](${baseUrl}${to})${about === '' ? '' : `: ${about}`}`;
  const operations = AGENT_TAGS.all.flatMap(({ name, description }) => {
    const those = routes.filter((route) => AGENT_TAGS.of(route) === name);
    if (those.length === 0) return [];
    const lines = those.map((route) =>
      link(
        `${route.method} ${route.path}`,
        `/docs#${route.capability}`,
        `${route.summary} (${describePrincipals(route)})`,
      ),
    );
    return [`### ${name}`, '', description, '', ...lines, ''];
  });
  return [
    `# ${NAME}`,
    '',
    `> ${ABOUT}`,
    '',
    `The base address is ${baseUrl}${elsewhere}. An agent signs a JWT with its own RSA key (RS256; claims agent_id, owner_id, iat, exp; 60 seconds), a fresh one for each request, and sends it as Authorization: Bearer. Bodies are JSON.`,
    '',
    '- A 202 means that a person decides: poll /v1/approvals/{id}?wait=50, and do not send the call again.',
    '- A 403 says why in `reason`. After scope_not_granted ask for access: POST /v1/access-request.',
    '- A 403 agent_halted says in `halt` what ends it. A 429 says in Retry-After how long to wait.',
    '- Branch on `error` and `reason`, never on `detail`.',
    '',
    '## Documents',
    '',
    link('OpenAPI document', '/v1/openapi.json', 'the whole agent API, OpenAPI 3.1'),
    link('Capability manifest', '/agent-manifest.json', 'the same in short, as JSON'),
    '',
    '## Guides',
    '',
    ...guides.map(({ name, title, about }) => link(title, `/docs/${name}.md`, about)),
    '',
    '## Operations',
    '',
    ...operations,
  ].join('\n');
}
