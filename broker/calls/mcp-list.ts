/** The whole list of an MCP server's tools, however it is cut into pages, within bounds. */

import { isJsonWithin } from '../../json/member-texts.ts';
import type { McpAnswer, McpClient } from '../egress/mcp-client.ts';
import { mirroredArguments } from '../egress/mcp-mirror.ts';
import { unreachable } from '../egress/unreachable.ts';
import type { JsonObject } from '../policy/facts.ts';

const MOST_TOOLS = 1_000;
const MOST_PAGES = 50;
/** Characters of all pages together. */
const MOST_TEXT = 4 * 1024 * 1024;
/** Levels of a page: some 60 of a schema's objects within each other. Deeper ones break readers that recurse. */
const MOST_DEPTH = 128;
const LONGEST_CURSOR = 4_096;

/** Reads page after page. What keeps the list from being read comes out as it is, or as a server that breaks the rules. */
export async function listAll(
  client: McpClient,
): Promise<{ ok: true; tools: JsonObject[] } | { ok: false; answer: McpAnswer }> {
  const tools: JsonObject[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  let read = 0;
  let seen = 0;
  for (;;) {
    const answer = await client.list(cursor);
    if (!('kind' in answer) || answer.kind !== 'result') return { ok: false, answer };
    const { tools: page, nextCursor } = answer.value;
    if (!Array.isArray(page)) return refuse('not_mcp');
    read += answer.text.length;
    seen += page.length;
    // Before anything is looked at: looking at a list that is too long takes long.
    if (seen > MOST_TOOLS || read > MOST_TEXT) return refuse('too_many_tools');
    if (!isJsonWithin(answer.text, MOST_DEPTH) || !page.every(isTool)) return refuse('not_mcp');
    // A tool whose marks break the rules must not be called, so it is as if it were not there (revision 2026-07-28).
    for (const tool of page as JsonObject[]) if (mirroredArguments(tool.inputSchema) !== undefined) tools.push(tool);
    if (nextCursor === undefined || nextCursor === null) return { ok: true, tools };
    if (typeof nextCursor !== 'string' || nextCursor.length > LONGEST_CURSOR) return refuse('not_mcp');
    cursors.add(cursor ?? '');
    cursor = nextCursor;
    // A cursor that was there before goes round for ever.
    if (cursors.has(cursor) || cursors.size >= MOST_PAGES) return refuse('too_many_tools');
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
