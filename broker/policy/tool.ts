/**
 * Tools of MCP servers: their endpoints, what a definition says, what a tool does, and whether it is still the one that was accepted.
 */
import type { CallAsk } from './call-ask.ts';
import type { JsonObject, Method } from './facts.ts';
import type { Classified, PlatformRules } from './platform-rules.ts';

/** What a call of a tool does. A server's own word for it only ever tightens a decision; an owner's stands. */
export const TOOL_EFFECTS = ['reads', 'writes', 'destroys'] as const;
export type ToolEffect = (typeof TOOL_EFFECTS)[number];

/** `new`: nobody has accepted it. `changed`: it is not what was accepted. Neither is called. */
export type ToolState = 'accepted' | 'new' | 'changed';

/** Names as MCP has them since revision 2025-11-25, which is also what an endpoint can name. */
export const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** Members of a definition that a model reads or that say how to call: a change of any is a change of the tool. */
const MEMBERS = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations', 'execution'] as const;

/** A definition as it is compared, kept and shown: icons, and what a server notes for itself, left out. */
export function toolDefinition(listed: JsonObject): JsonObject {
  return Object.fromEntries(
    MEMBERS.flatMap((name) => {
      const member = listed[name];
      return member === undefined ? [] : [[name, member]];
    }),
  );
}

/** What a tool does by its annotations. Who says nothing destroys (MCP, ToolAnnotations: the defaults). */
export function effectOf({ annotations }: JsonObject): ToolEffect {
  const { readOnlyHint, destructiveHint } = (
    typeof annotations === 'object' && annotations !== null ? annotations : {}
  ) as {
    readOnlyHint?: unknown;
    destructiveHint?: unknown;
  };
  if (readOnlyHint === true) return 'reads';
  return destructiveHint === false ? 'writes' : 'destroys';
}

export function toolState(tool: { accepted_hash: string | null; offered_hash: string }): ToolState {
  if (tool.accepted_hash === null) return 'new';
  return tool.accepted_hash === tool.offered_hash ? 'accepted' : 'changed';
}

/** The method that a call also counts as, for rules that hold or deny: to destroy is a DELETE, though it is sent as a POST. */
export function actsAs(effect: ToolEffect | undefined): Method | undefined {
  return effect === 'destroys' ? 'DELETE' : undefined;
}

/** Endpoints of MCP platforms: `/tools/<name>` calls a tool, and `/tools` lists those of a scope. */
const TOOLS = '/tools';
const TOOL_CALL = /^\/tools\/([A-Za-z0-9_.-]{1,128})$/;

/** The tool that an endpoint of an MCP platform names. */
export function toolOf(path: string): string | undefined {
  return TOOL_CALL.exec(path)?.[1];
}

/** The scopes that cover a call of a tool. */
export function findTool(rules: PlatformRules, path: string): Classified | undefined {
  const tool = toolOf(path);
  return tool === undefined ? undefined : rules.index.tool.find(tool);
}

/** What is listed are tools of the scope that is used, so any scope that has some will do. */
export function findListing(rules: PlatformRules, { method, path }: CallAsk): Classified | undefined {
  if (method !== 'GET' || path !== TOOLS) return undefined;
  const scopes = [...rules.scopes].flatMap(([scope, operations]) => (operations.length > 0 ? [scope] : []));
  return scopes.length === 0 ? undefined : { kind: 'classified', scopes, operations: ['tools/list'] };
}
