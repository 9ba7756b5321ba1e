/** What is stored of the tool that a call names: its effect, for the decision, and whether it may be called at all. */

import type { OutcomeOf } from '../../audit/outcome.ts';
import type { Uses } from '../../broker.ts';
import type { CompiledPlatform } from '../../facts/compiled.ts';
import type { Ask, Verdict } from '../../policy/facts.ts';
import { actsAs, type ToolState, toolOf, toolState } from '../../policy/tool.ts';
import { present } from '../../runtime/present.ts';
import { findTool, hasTools, type ToolPlace } from '../../store/mcp-tools.ts';
import type { McpToolTable } from '../../store/tables/platforms.ts';
import type { Call } from '../call.ts';

export type ToolOnFile = {
  tool: string;
  place: ToolPlace;
  row: McpToolTable | undefined;
  /** Whether no tools of the server are known, because it was never asked. */
  isFirst: boolean;
};

/** Looks a tool up; undefined when the call names none. One statement, and only for calls to MCP servers. */
export async function toolOnFile(
  { broker }: Uses<'store'>,
  organisationId: string,
  platform: CompiledPlatform | undefined,
  { platformId, call }: Ask,
): Promise<ToolOnFile | undefined> {
  const tool = call === undefined ? undefined : toolOf(call.path);
  if (tool === undefined || platform?.rules.kind !== 'mcp') return undefined;
  const { db } = broker.store;
  const place = { organisationId, platformId, server: platform.manifest.base_url };
  const row = await findTool(db, place, tool);
  return { tool, place, row, isFirst: row === undefined && !(await hasTools(db, place)) };
}

/** Returns the ask with the method that stands for the tool's effect. */
export function withEffect(ask: Ask, onFile: ToolOnFile | undefined): Ask {
  const method = actsAs(onFile?.row?.effect);
  return method === undefined ? ask : { ...ask, call: { ...present(ask.call, 'call'), actsAs: method } };
}

/** Returns why the stored tool may not be called; undefined when it may, or when it is not known yet. */
export function whyQuarantined({ row, tool }: ToolOnFile): string | undefined {
  if (row === undefined) return undefined;
  const state = toolState(row);
  return state === 'accepted' ? undefined : quarantine(tool, state);
}

/** Whether the server's tools are known, and this one is not among them, so that nobody can have accepted it. */
export const isAbsent = ({ row, isFirst }: ToolOnFile): boolean => row === undefined && !isFirst;

/**
 * Returns why an absent tool may not be called; undefined when it is stored, or when no tools of the server are known.
 *
 * @param isListed the server was asked for its tools just now
 */
export function whyAbsent(onFile: ToolOnFile, isListed: boolean): string | undefined {
  if (onFile.row !== undefined) return undefined;
  if (isListed) return quarantine(onFile.tool, undefined);
  return isAbsent(onFile) ? `the MCP server had no tool ${onFile.tool} when it was last asked` : undefined;
}

/** Whether listing the server's tools may show this tool as accepted again. A new tool stays quarantined until an owner accepts it. */
export const mayBeAccepted = ({ row }: ToolOnFile): boolean => row !== undefined && toolState(row) === 'changed';

/** The reason text of a quarantined tool. `state` undefined: the server does not list it. */
export function quarantine(tool: string, state: ToolState | undefined): string {
  if (state === 'changed')
    return `tool ${tool} has changed since it was accepted (description, arguments or hints). An owner has to review and accept it`;
  if (state === 'new')
    return `tool ${tool} was added to the server after its tools were accepted. An owner has to review and accept it`;
  return `the MCP server has no tool ${tool}`;
}

/** The refusal of a tool that is not, or no longer, the accepted one: no scope covers it then. */
export function unlikeAccepted(decided: Verdict, detail: string): Extract<Verdict, { kind: 'deny' }> {
  const { evaluated, notEvaluated, matched, conditional, grant } = decided;
  const looked = { evaluated, notEvaluated, matched, conditional, ...(grant && { grant }) };
  return { kind: 'deny', reason: 'endpoint_scope_mismatch', detail, ...looked };
}

/** Refuses the call; caused by the server, so it does not count against the agent. */
export const refuseTool = ({ record }: Call, decided: Verdict, detail: string): OutcomeOf<'denied'> => ({
  kind: 'denied',
  verdict: unlikeAccepted(decided, detail),
  call: record,
});
