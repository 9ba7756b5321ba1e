/** The tools as clients list them. Their names are the specification's recommended client paths. */
import type { Tool } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Permissions } from '../client/permissions.ts';
import { Structured } from './answer.ts';
import {
  AccessArguments,
  CheckArguments,
  DeleteArguments,
  NoArguments,
  ReadArguments,
  WriteArguments,
} from './arguments.ts';
import { describePermissions } from './describe.ts';

/** What every tool that calls a platform says. */
const CALLING = `The broker puts the platform's credential in; you never see it. Take scope and platform from the list below. A call may answer at once, be refused with a reason and what to do next, or be held until a person approves it: then show the person the link, do not submit it again, and call check_approval. An identical call while one is held is that same call.`;

type Described = Omit<Tool, 'inputSchema' | 'outputSchema' | 'description'> & {
  input: z.ZodType;
  description: string;
  /** Whether the description ends with what the agent may do. */
  lists: boolean;
};

const TOOLS: readonly Described[] = [
  {
    name: 'read_platform',
    title: 'Read from a platform',
    description: `Reads from a connected platform (always HTTP GET). ${CALLING}`,
    input: ReadArguments,
    lists: true,
    annotations: { readOnlyHint: true, openWorldHint: true },
  },
  {
    name: 'write_platform',
    title: 'Write to a platform',
    description: `Creates or changes something on a connected platform (HTTP POST, PUT or PATCH; POST unless said otherwise). ${CALLING}`,
    input: WriteArguments,
    lists: true,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  },
  {
    name: 'delete_platform',
    title: 'Delete from a platform',
    description: `Deletes something on a connected platform (always HTTP DELETE). ${CALLING}`,
    input: DeleteArguments,
    lists: true,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  },
  {
    name: 'check_approval',
    title: 'See what became of a held call',
    description:
      'Waits up to 50 seconds for the decision on a held call, and answers what became of it: the platform’s answer when it was approved and made, denied, expired, or still pending_approval. Call it again while it is pending. It finds calls that were held before a restart, too.',
    input: CheckArguments,
    lists: false,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'list_permissions',
    title: 'List what may be done',
    description:
      'Lists the platforms and scopes that you hold now, which of them wait for a person, their limits (recipients, repositories), and connections.',
    input: NoArguments,
    lists: false,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'request_access',
    title: 'Ask an owner for a scope',
    description:
      'Asks the owners for a scope that you do not hold, or for a platform, and waits up to 50 seconds for their decision. Asking again for the same while it waits is the same request, so calling it again is how to see whether it was decided.',
    input: AccessArguments,
    lists: false,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
];

export const TOOL_NAMES: readonly string[] = TOOLS.map(({ name }) => name);

/** The list with what the agent may do in it; `permissions` as describePermissions takes them. */
export function listTools(permissions: Permissions | 'untold' | undefined): Tool[] {
  const may = describePermissions(permissions);
  return LISTED.map(({ lists, description, ...tool }) => ({
    ...tool,
    description: lists ? `${description}\n\n${may}` : description,
  }));
}

/** As JSON Schema. `input`: what has a default may be left out. Not every client knows that `{}` takes everything. */
const schemaOf = (schema: z.ZodType, io: 'input' | 'output') =>
  z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      // Any text names a member anyway, and some clients' models refuse every tool over it.
      delete jsonSchema.propertyNames;
      const { additionalProperties: more } = jsonSchema;
      if (typeof more === 'object' && Object.keys(more).length === 0) jsonSchema.additionalProperties = true;
    },
  });

const OUTPUT_SCHEMA = schemaOf(Structured, 'output') as NonNullable<Tool['outputSchema']>;
/** With their schemas written out: once, since a client asks for the list as often as it likes. */
const LISTED = TOOLS.map(({ input, ...tool }) => ({
  ...tool,
  inputSchema: schemaOf(input, 'input') as Tool['inputSchema'],
  outputSchema: OUTPUT_SCHEMA,
}));
