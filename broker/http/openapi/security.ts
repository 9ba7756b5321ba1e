/** Describes the authentication of routes for the OpenAPI document. */
import { sessionCookieName } from '../../auth/session-cookie.ts';
import type { Auth, Route } from '../route.ts';
import type { JsonSchema } from './schemas.ts';

type Way = Record<string, string[]>;

const schemesAt = (baseUrl: string): Record<string, JsonSchema> => ({
  agentToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'Signed by the agent with its own key (RS256), 60 seconds long, at most 5 minutes, a fresh one for each request; or, of an agent that keeps no key, issued for it by its platform. Claims of one that is signed: `agent_id`, `owner_id`, `iat`, `exp`; `sub`, `aud` and `session_id` may be there.',
  },
  childToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'The bearer_token that POST /v1/agents/children answered: a child identity has no key.',
  },
  staticKey: {
    type: 'http',
    scheme: 'bearer',
    description:
      'A static key of the agent for the connection in the address (`abk_…`), issued by an owner: weaker than a token that the agent signs.',
  },
  mcpToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'An access token of /mcp, by OAuth 2.1.',
  },
  gitBasic: {
    type: 'http',
    scheme: 'basic',
    description:
      'The token of the agent, or the bearer_token of a child, is the password. The user name is ignored, but for `connection.<label>`, which names the connection.',
  },
  ownerSession: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'A session of an owner: of this broker, or a token of the identity provider that the broker is configured to trust.',
  },
  pipelineToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description:
      'A token that the platform of a pipeline issues for it (GitHub Actions, GitLab CI, a service account of Kubernetes), with the audience that POST /owner/pipelines answered.',
  },
  ownerCookie: {
    type: 'apiKey',
    in: 'cookie',
    name: sessionCookieName(baseUrl),
    description:
      'The session of an owner in a browser. With the id of an owner in `X-Svc-Owner` a request is a 403 under the session of another one.',
  },
  csrfHeader: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Svc-Csrf',
    description: 'With any value: goes with the cookie where something changes, because no other site can send it.',
  },
  localCredential: {
    type: 'http',
    scheme: 'bearer',
    description: "The credential of the command line on the broker's machine.",
  },
});

/** `of`: the alternatives that a route accepts; every credential in one alternative is required. */
export type Security = {
  of(route: Route): Way[];
  /** Returns the security schemes that the routes use. */
  schemes(routes: readonly Route[]): Record<string, JsonSchema>;
};

/** `cookies`: whether the document covers browser sessions, too. */
export function makeSecurity({ baseUrl, cookies }: { baseUrl: string; cookies: boolean }): Security {
  const of = ({ auth, method }: Route): Way[] => {
    const cookie: Way = method === 'GET' ? { ownerCookie: [] } : { ownerCookie: [], csrfHeader: [] };
    const owner: Way[] = [{ ownerSession: [] }, ...(cookies ? [cookie] : [])];
    const agents: Way[] = [{ agentToken: [] }, { childToken: [] }];
    const ways: Record<Auth, Way[]> = {
      none: [],
      agent: agents,
      mcp_client: [{ mcpToken: [] }, ...agents],
      owner,
      agent_or_owner: [...agents, ...owner],
      // An empty alternative means that no credential is needed (OpenAPI 3.1, Security Requirement Object).
      anyone: [{}, ...agents, { ownerSession: [] }],
      owner_or_local: [...owner, { localCredential: [] }],
      owner_or_pipeline: [...owner, { pipelineToken: [] }],
      local: [{ localCredential: [] }],
      git: [{ gitBasic: [] }],
      raw: [...agents, { staticKey: [] }],
    };
    return ways[auth];
  };
  return {
    of,
    schemes: (routes) => {
      const used = new Set(routes.flatMap((route) => of(route).flatMap((way) => Object.keys(way))));
      return Object.fromEntries(Object.entries(schemesAt(baseUrl)).filter(([name]) => used.has(name)));
    },
  };
}
