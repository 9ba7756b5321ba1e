/** The list of tools. Their names are the specification's recommended client paths. */
import type { Tool } from '@modelcontextprotocol/server';
import type { Permissions } from '../client/permissions.ts';
import { describePermissions } from './describe.ts';
import SCHEMAS from './tool-schemas.json' with { type: 'json' };

/** Common description of the tools that call a platform. */
const CALLING = `The broker puts the platform's credential in; you never see it. Take scope and platform from the list below. A call may answer immediately, be refused with a reason and what to do next, or be held until a person approves it: then show the person the link, do not submit it again, and call check_approval. An identical call while one is held is that same call.`;

type Described = Omit<Tool, 'inputSchema' | 'outputSchema' | 'description'> & {
  name: keyof typeof SCHEMAS.input;
  description: string;
  /** Whether the description ends with the agent's permissions. */
  lists: boolean;
};

const TOOLS: readonly Described[] = [
  {
    name: 'read_platform',
    title: 'Read from a platform',
    description: `Reads from a connected platform (always HTTP GET). ${CALLING}`,
    lists: true,
    annotations: { readOnlyHint: true, openWorldHint: true },
  },
  {
    name: 'write_platform',
    title: 'Write to a platform',
    description: `Creates or changes something on a connected platform (HTTP POST, PUT or PATCH; POST unless said otherwise). ${CALLING}`,
    lists: true,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  },
  {
    name: 'delete_platform',
    title: 'Delete from a platform',
    description: `Deletes something on a connected platform (always HTTP DELETE). ${CALLING}`,
    lists: true,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  },
  {
    name: 'check_approval',
    title: 'See what became of a held call',
    description:
      'Waits up to 50 seconds for the decision on a held call, and answers what became of it: the platform’s answer when it was approved and made, denied, expired, or still pending_approval. Call it again while it is pending. It finds calls that were held before a restart, too.',
    lists: false,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'list_permissions',
    title: 'List what may be done',
    description:
      'Lists the platforms and scopes that you hold now, which of them wait for a person, their limits (recipients, repositories), and connections.',
    lists: false,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'request_access',
    title: 'Ask an owner for a scope',
    description:
      'Asks the owners for a scope that you do not hold, or for a platform, and waits up to 50 seconds for their decision. Asking again for the same while it waits is the same request, so calling it again is how to see whether it was decided.',
    lists: false,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
];

export const TOOL_NAMES: readonly string[] = TOOLS.map(({ name }) => name);

/** Returns the list of tools including the agent's permissions; see describePermissions. */
export function listTools(permissions: Permissions | 'untold' | undefined): Tool[] {
  const may = describePermissions(permissions);
  return LISTED.map(({ lists, description, ...tool }) => ({
    ...tool,
    description: lists ? `${description}\n\n${may}` : description,
  }));
}

const OUTPUT_SCHEMA = SCHEMAS.output as NonNullable<Tool['outputSchema']>;
const LISTED = TOOLS.map((tool) => ({
  ...tool,
  inputSchema: SCHEMAS.input[tool.name] as Tool['inputSchema'],
  outputSchema: OUTPUT_SCHEMA,
}));
