import { z } from 'zod';
import { openApiDocument } from '../openapi/document.ts';
import { AGENT_TAGS } from '../openapi/tags.ts';
import { type Route, route } from '../route.ts';

const DESCRIPTION = `Agent Broker stands between agents and the platforms they use. An agent names a platform, an endpoint, a method and
a scope; the broker decides, holds the call for a person where it must, puts in a credential that the agent never sees, forwards the
call, and leaves a signed receipt.

- **Who asks**: an agent signs a JWT with its own key (RS256), a fresh one for each request, and sends it as Bearer.
- **Errors**: branch on \`error\` and \`reason\`, which are stable; \`detail\` is for people and may change. A call that is held is a
  202, no error: poll it, do not send it again.
- **Limits**: a 429 always carries \`Retry-After\`.
- **Guides**: [/docs](/docs).`;

/**
 * Whether a route is public by the specification: everything under /v1, git, identity documents, discovery and health. The routes for owners, pages
 * for people, callbacks of OAuth and all others have no public contract.
 */
export const isPublic = ({ path }: Pick<Route, 'path'>): boolean =>
  /^\/(v1|git|agents|orgs|access|lab|\.well-known)\/|^\/(health|livez|readyz|metrics|version|llms\.txt|agent-manifest\.json)$/.test(
    path,
  );

/**
 * GET /v1/openapi.json (specification, Versioning). Built at the first request, then cached.
 *
 * @param routes returns all routes, this one included; called at the first request
 */
export function agentOpenApi(routes: () => readonly Route[]): Route {
  let built: { baseUrl: string; text: string } | undefined;
  return route({
    method: 'GET',
    path: '/v1/openapi.json',
    auth: 'none',
    anyOrigin: true,
    capability: 'openapi',
    summary: 'This document.',
    answers: {
      200: {
        description: 'An OpenAPI 3.1 document.',
        schema: z.looseObject({ openapi: z.string(), info: z.looseObject({ version: z.string() }) }),
        headers: ['Cache-Control'],
      },
    },
    errors: [],
    handle: async ({ services: { broker } }) => {
      const { baseUrl, proxyUrl } = broker;
      if (built?.baseUrl !== baseUrl) {
        const about = {
          title: 'Agent Broker, agent API',
          description: DESCRIPTION,
          baseUrl,
          proxyUrl,
          tags: AGENT_TAGS,
          cookies: false,
        };
        built = { baseUrl, text: JSON.stringify(openApiDocument(routes().filter(isPublic), about)) };
      }
      return { status: 200, body: built.text, headers: { 'Cache-Control': 'public, max-age=300' } };
    },
  });
}
