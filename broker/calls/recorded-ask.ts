/** Past calls from their audit rows, which hold neither query nor headers nor body. */
import type { Uses } from '../broker.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import { type Ask, METHODS, type Method } from '../policy/facts.ts';
import type { AuditRow } from '../store/audit.ts';
import { toolOnFile, withEffect } from './mcp/tool-on-file.ts';

export type CallRow = AuditRow & {
  agent_public_id: string;
  platform_id: string;
  scope: string;
  method: Method;
  path: string;
};

/** Whether a row has all columns of a decided call. */
export function isWhole(row: AuditRow): row is CallRow {
  const { agent_public_id, platform_id, scope, method, path, decision } = row;
  const isKnown = agent_public_id !== null && platform_id !== null && scope !== null && path !== null;
  return isKnown && decision !== null && METHODS.some((one) => one === method);
}

/** Builds the ask of a recorded call, as far as its row goes. */
export async function recordedAsk(
  services: Uses<'clock' | 'store'>,
  row: CallRow,
  { platform }: Pick<LoadedFacts, 'platform'>,
): Promise<Ask> {
  const { platform_id: platformId, scope, method, path } = row;
  const call = { method, path, query: '', headers: {}, body: undefined, recorded: 'row' as const };
  const asked = { platformId, scope, call };
  return withEffect(asked, await toolOnFile(services, row.organisation_id, platform, asked));
}
