/** `flags` of an audit row: what is worth saying of a call beside its columns. */
import { pushFlags } from './git-row.ts';
import type { CallRecord } from './outcome.ts';

/** JSON; null: there is nothing to say. `ended`: of how it ended. */
export function flagsOf(call: CallRecord, ended?: Record<string, unknown>): string | null {
  const {
    agent,
    approval,
    droppedHeaders,
    refreshUnavailable,
    git,
    caller,
    bearer,
    standing,
    limits,
    traceId,
    accessEnded,
  } = call;
  const plain = agent.parentAgentId === null && approval === undefined && !refreshUnavailable && !git?.refs.length;
  const isOwn =
    caller === undefined && bearer === undefined && standing === undefined && !limits && traceId === undefined;
  if (plain && isOwn && accessEnded === undefined && droppedHeaders.length === 0 && ended === undefined) return null;
  return JSON.stringify({
    ...(agent.parentAgentId !== null && { parent: agent.parentAgentId }),
    ...(approval && { approval: approval.provenance }),
    ...(droppedHeaders.length > 0 && { dropped_headers: droppedHeaders }),
    ...(refreshUnavailable && { refresh: 'unavailable' }),
    ...(caller && { caller }),
    ...bearer,
    ...(standing && { standing_approval: standing }),
    ...(limits && { limits }),
    ...(traceId !== undefined && { trace_id: traceId }),
    ...(git && pushFlags(git)),
    ...(accessEnded && { ended: 'access_ended', ended_because: accessEnded.reason }),
    ...ended,
  });
}
