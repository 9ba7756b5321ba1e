/** The three tools of the lab's MCP server (specification, Discovery: POST /lab/mcp). None of them has a secret. */

import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { MAX_NOTE_LENGTH, type Notes } from './notes.ts';

const LOCAL = { openWorldHint: false } as const;

/** The names of the request's headers, never a value. */
export type Seen = { headers: readonly string[] };

const text = (value: unknown) => [{ type: 'text' as const, text: JSON.stringify(value) }];

type Shape = Parameters<typeof z.object>[0];

/**
 * An object schema that is listed without `$schema`: MCP reads that as draft 2020-12 (2025-11-25, JSON Schema Usage), and clients whose validator
 * knows only draft 7 cannot compile a schema that names another one.
 */
function object<Members extends NonNullable<Shape>>(members: Members) {
  const schema = z.object(members);
  const standard = schema['~standard'];
  const { input, output } = standard.jsonSchema;
  const unnamed =
    (convert: typeof input): typeof input =>
    (options) => {
      const { $schema: _, ...made } = convert(options);
      return made;
    };
  return { '~standard': { ...standard, jsonSchema: { input: unnamed(input), output: unnamed(output) } } };
}

/** Registers the tools on a server that serves one request. */
export function addTools(server: McpServer, notes: Notes, seen: Seen): void {
  server.registerTool(
    'echo',
    {
      title: 'Echo',
      description: 'Answers the text that it is given.',
      inputSchema: object({ text: z.string().describe('What to answer.') }),
      annotations: { readOnlyHint: true, ...LOCAL },
    },
    ({ text: said }) => ({ content: [{ type: 'text', text: said }] }),
  );
  server.registerTool(
    'whoami',
    {
      title: 'Who am I',
      description:
        'Answers what this server saw of the caller: the names of the headers and of the members of _meta, never a value. Nothing is verified.',
      outputSchema: object({
        verified: z.literal(false).describe('This server checks no token and no attestation.'),
        headers: z.array(z.string()).describe('Names of the headers, in lower case.'),
        meta_keys: z.array(z.string()).describe("Names of the members of the request's _meta."),
      }),
      annotations: { readOnlyHint: true, ...LOCAL },
    },
    (context) => {
      const found = {
        verified: false as const,
        headers: [...seen.headers],
        meta_keys: Object.keys(context.mcpReq._meta ?? {}).sort(),
      };
      return { content: text(found), structuredContent: found };
    },
  );
  server.registerTool(
    'write_note',
    {
      title: 'Write a note',
      description:
        'Keeps a note in the memory of this server, with at most a hundred others, until it restarts. Notes cannot be read.',
      inputSchema: object({ text: z.string().min(1).max(MAX_NOTE_LENGTH).describe('The note.') }),
      outputSchema: object({
        number: z.int().describe('Counted from 1 since the server started.'),
        kept: z.int().describe('How many notes are kept.'),
      }),
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, ...LOCAL },
    },
    ({ text: note }) => {
      const added = notes.add(note);
      return { content: text(added), structuredContent: added };
    },
  );
}
