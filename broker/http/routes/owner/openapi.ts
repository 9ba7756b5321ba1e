import { z } from 'zod';
import { openApiDocument } from '../../openapi/document.ts';
import { type Route, route } from '../../route.ts';

const DESCRIPTION =
  'For the people who govern agents, and for their programs. `agent-broker owner token` or a sign-in link creates a session. A change by an owner applies from the next decision, and is recorded.';

/** Whether a route is for owners: those under /owner, and the others that only owners use (passkeys, sign-in). */
export const isOwners = ({ path, auth }: Route): boolean =>
  path.startsWith('/owner/') || path.startsWith('/console/') || auth === 'owner';

/**
 * GET /owner/openapi.json: separate from the agents' document; they have no route in common.
 *
 * @param routes returns all routes, this one included; called at the first request
 */
export function ownerOpenApi(routes: () => readonly Route[]): Route {
  let built: { baseUrl: string; text: string } | undefined;
  return route({
    method: 'GET',
    path: '/owner/openapi.json',
    auth: 'none',
    capability: 'owner.openapi',
    summary: 'This document.',
    answers: {
      200: {
        description: 'An OpenAPI 3.1 document.',
        schema: z.looseObject({ openapi: z.string(), info: z.looseObject({ version: z.string() }) }),
      },
    },
    errors: ['invalid_request'],
    handle: async ({ services: { broker } }) => {
      const { baseUrl } = broker;
      if (built?.baseUrl !== baseUrl) {
        const about = { title: 'Agent Broker, owner API', description: DESCRIPTION, baseUrl };
        built = { baseUrl, text: JSON.stringify(openApiDocument(routes().filter(isOwners), about)) };
      }
      return { status: 200, body: built.text };
    },
  });
}
