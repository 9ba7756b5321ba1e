/** Tools of MCP servers: their endpoints, definitions and effects, and whether a tool is unchanged since it was accepted. */
import type { CallAsk } from './call-ask.ts';
import type { JsonObject, Method } from './facts.ts';
import type { Classified, PlatformRules } from './platform-rules.ts';

/** The effect of a call of a tool. The server's own claim can only tighten a decision; an owner's setting is authoritative. */
export const TOOL_EFFECTS = ['reads', 'writes', 'destroys'] as const;
export type ToolEffect = (typeof TOOL_EFFECTS)[number];

/** `new`: nobody has accepted it. `changed`: it differs from what was accepted. Neither can be called. */
export type ToolState = 'accepted' | 'new' | 'changed';

/** Names that MCP allows since revision 2025-11-25, which can also be part of an endpoint. */
export const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** Members of a definition that a model reads or that define how to call: a change of any of them is a change of the tool. */
const MEMBERS = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations', 'execution'] as const;

/** Returns a definition as it is compared, stored and shown: without icons and the server's own metadata. */
export function toolDefinition(listed: JsonObject): JsonObject {
  return Object.fromEntries(
    MEMBERS.flatMap((name) => {
      const member = listed[name];
      return member === undefined ? [] : [[name, member]];
    }),
  );
}

/** Returns the effect of a tool by its annotations. Without annotations it destroys (MCP, ToolAnnotations: the defaults). */
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

/** Returns the method as which a call also counts, for rules that hold or deny: a tool that destroys counts as a DELETE, though it is sent as a POST. */
export function actsAs(effect: ToolEffect | undefined): Method | undefined {
  return effect === 'destroys' ? 'DELETE' : undefined;
}

/** Endpoints of MCP platforms: `/tools/<name>` calls a tool, and `/tools` lists those of a scope. */
const TOOLS = '/tools';
const TOOL_CALL = /^\/tools\/([A-Za-z0-9_.-]{1,128})$/;

/** Returns the tool in an endpoint of an MCP platform. */
export function toolOf(path: string): string | undefined {
  return TOOL_CALL.exec(path)?.[1];
}

/** Returns the scopes that cover a call of a tool. */
export function findTool(rules: PlatformRules, path: string): Classified | undefined {
  const tool = toolOf(path);
  return tool === undefined ? undefined : rules.index.tool.find(tool);
}

/** Returns the scopes that cover a listing: every scope with tools, as only the tools of the call's scope are listed. */
export function findListing(rules: PlatformRules, { method, path }: CallAsk): Classified | undefined {
  if (method !== 'GET' || path !== TOOLS) return undefined;
  const scopes = [...rules.scopes].flatMap(([scope, operations]) => (operations.length > 0 ? [scope] : []));
  return scopes.length === 0 ? undefined : { kind: 'classified', scopes, operations: ['tools/list'] };
}
