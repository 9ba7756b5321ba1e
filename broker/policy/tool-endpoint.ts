/** Endpoints of MCP platforms: `/tools/<name>` calls a tool, and `/tools` lists those of a scope. */
import type { CallAsk } from './call-ask.ts';
import type { Classified, PlatformRules } from './platform-rules.ts';

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
