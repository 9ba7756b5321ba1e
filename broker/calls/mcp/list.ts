/** Reads the whole list of an MCP server's tools, page by page, within bounds. */

import { jsonWithin } from '../../../json/member-texts.ts';
import type { McpClient } from '../../egress/mcp/client.ts';
import { mirroredArguments } from '../../egress/mcp/mirror.ts';
import type { McpAnswer } from '../../egress/mcp/protocol.ts';
import { unreachable } from '../../egress/unreachable.ts';
import type { JsonObject } from '../../policy/facts.ts';
import { inSlices } from '../../runtime/pace.ts';

const MAX_TOOLS = 1_000;
const MAX_PAGES = 50;
/** Characters of all pages together. */
const MAX_TEXT_LENGTH = 4 * 1024 * 1024;
/** JSON values (objects, arrays, strings, numbers, literals) in one page, which is parsed in one piece: a hundred per tool. */
const MAX_VALUES = 100_000;
/** Nesting depth of a page: about 60 nested objects of a schema. Deeper pages break recursive readers. */
const MAX_DEPTH = 128;
const MAX_CURSOR_LENGTH = 4_096;

export type Listed = { ok: true; tools: JsonObject[] } | { ok: false; answer: McpAnswer };

/** The same with a client that is used for nothing else: its session is ended at the server. */
export async function listOnce(client: McpClient): Promise<Listed> {
  try {
    return await listAll(client);
  } finally {
    await client.end();
  }
}

/** Reads page after page. A failed request is returned as it is; a list that breaks the bounds or the protocol as `unreachable`. */
export async function listAll(client: McpClient): Promise<Listed> {
  const tools: JsonObject[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  let read = 0;
  let seen = 0;
  for (;;) {
    const answer = await client.list(cursor);
    if (!('kind' in answer) || answer.kind !== 'result') return { ok: false, answer };
    read += answer.text.length;
    // Checked before parsing, because parsing an oversized list takes long.
    if (read > MAX_TEXT_LENGTH) return refuse('too_many_tools');
    if (!(await inSlices(jsonWithin(answer.text, { levels: MAX_DEPTH, values: MAX_VALUES })))) return refuse('not_mcp');
    const { tools: page, nextCursor } = JSON.parse(answer.text) as { tools?: unknown; nextCursor?: unknown };
    if (!Array.isArray(page)) return refuse('not_mcp');
    seen += page.length;
    if (seen > MAX_TOOLS) return refuse('too_many_tools');
    if (!page.every(isTool)) return refuse('not_mcp');
    // A tool whose mirrored arguments are invalid must not be called, so it is left out (revision 2026-07-28).
    for (const tool of page as JsonObject[]) if (mirroredArguments(tool.inputSchema) !== undefined) tools.push(tool);
    if (nextCursor === undefined || nextCursor === null) return { ok: true, tools };
    if (typeof nextCursor !== 'string' || nextCursor.length > MAX_CURSOR_LENGTH) return refuse('not_mcp');
    cursors.add(cursor ?? '');
    cursor = nextCursor;
    // A repeated cursor would loop forever.
    if (cursors.has(cursor) || cursors.size >= MAX_PAGES) return refuse('too_many_tools');
  }
}

const refuse = (code: 'not_mcp' | 'too_many_tools') => ({
  ok: false as const,
  answer: unreachable(code, true, 'list'),
});

const isTool = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as JsonObject).name === 'string' &&
  typeof (value as JsonObject).inputSchema === 'object';
