/** GET /.well-known/aa-agent-schema: the body of POST /v1/register as a JSON Schema that other tools can read. */
import { z } from 'zod';
import type { JsonSchema } from './openapi-schemas.ts';
import { Registering } from './registration-request.ts';

/** The client metadata of RFC 7591 section 2 that correspond to our members. */
const NAMES = {
  agent_name: 'client_name',
  requested_scopes: 'scope',
} as const;

/**
 * Builds the schema from the one by which the route validates. RFC 7591 lets a server define further members of client metadata: ours are such
 * members, and those with a counterpart there name it as `x-rfc7591`.
 */
export function registrationSchema(baseUrl: string): JsonSchema {
  const { properties, ...schema } = z.toJSONSchema(Registering, { io: 'input' });
  const named = Object.entries(properties ?? {}).map(([member, described]) => {
    const name = NAMES[member as keyof typeof NAMES];
    return [member, { ...(described as object), ...(name && { 'x-rfc7591': name }) }];
  });
  return {
    ...schema,
    $id: `${baseUrl}/.well-known/aa-agent-schema`,
    title: 'Agent registration',
    description: `Sent as JSON to ${baseUrl}/v1/register. The answer has client_id and scope, as a client information response of RFC 7591 section 3.2.1 does.`,
    properties: Object.fromEntries(named),
    examples: [
      {
        owner_id: '7d0b8a9e-2c55-4f0e-9a51-0d6f3f2b1c88',
        agent_name: 'triage',
        agent_description: 'Sorts new issues.',
        requested_scopes: [{ platformId: 'codehost', scopes: ['codehost:issues.read', 'codehost:issues.write'] }],
      },
    ],
  };
}
