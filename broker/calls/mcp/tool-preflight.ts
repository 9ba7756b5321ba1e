/** Asks an MCP server for its tools before a call is decided, when the called tool is unknown or changed. */
import type { Replay } from '../../approvals/replay.ts';
import type { CallRecord, Outcome } from '../../audit/outcome.ts';
import { intentRow } from '../../audit/row.ts';
import type { AgentPrincipal } from '../../auth/principal.ts';
import { unreachable } from '../../egress/unreachable.ts';
import type { LoadedFacts } from '../../facts/facts.ts';
import { decide } from '../../policy/decide.ts';
import type { Ask, Instant } from '../../policy/facts.ts';
import { beginCall, type Call, decidedBy, withRecord } from '../call.ts';
import type { CallServices } from '../call-services.ts';
import { concludeCall } from '../conclude.ts';
import { type Connected, connect } from '../connect.ts';
import { type McpRequest, whyUnlisted } from '../forward-mcp.ts';
import { type Concluded, type Forwarded, isConcluded } from '../forwarded.ts';
import { reloadPrincipal } from '../reload.ts';
import { forwardFresh } from '../send.ts';
import { isAbsent, mayBeAccepted, type ToolOnFile, whyQuarantined, withEffect } from './tool-on-file.ts';

/** `listed`: the tools are stored now; `who` and `now` are as of after listing. */
export type Preflight =
  | { kind: 'unneeded' }
  /** The call had to wait for a slot. */
  | { kind: 'facts_changed' }
  | { kind: 'listed'; who: AgentPrincipal; now: Instant }
  | { kind: 'failed'; outcome: Outcome };

const UNNEEDED: Preflight = { kind: 'unneeded' };

/** Stands for the server's answer, which is not returned to anyone. */
const LISTED: Forwarded = {
  kind: 'answer',
  status: 200,
  read: { kind: 'data', data: 'null', redacted: false, bytes: 0 },
};

/** Lists the server's tools when that can change the decision, and only for a call that is allowed as things are. */
export async function toolPreflight(
  services: CallServices,
  given: Call,
  at: { loaded: LoadedFacts; onFile: ToolOnFile; ask: Ask; now: Instant; replay: Replay | undefined },
): Promise<Preflight> {
  const { loaded, onFile, now, replay } = at;
  const hasChanged = whyQuarantined(onFile) !== undefined;
  if (!onFile.isFirst && !isAbsent(onFile) && !(hasChanged && mayBeAccepted(onFile))) return UNNEEDED;
  const verdict = decide(loaded.facts, withEffect(at.ask, onFile), now);
  if (verdict.kind === 'deny') return UNNEEDED;
  // A call that is sent lists the tools anyway. One that is held must not ask a person about a tool that does not exist.
  if (isAbsent(onFile) && (verdict.kind !== 'hold' || replay)) return UNNEEDED;
  const connected = await connect(services, given, loaded, verdict);
  if (!connected.ok) return UNNEEDED;
  if (replay && replay.connectionId !== null && connected.connection.id !== replay.connectionId) return UNNEEDED;
  if (!onFile.isFirst && !services.toolChecks.take(onFile.place, now)) return UNNEEDED;
  const decided = withRecord(connected.call, { decided: decidedBy(verdict, loaded) });
  const call = { ...decided, mask: verdict.mask };
  const begun = await beginCall(call, replay !== undefined);
  if (begun === 'too_many') return { kind: 'failed', outcome: { kind: 'too_many_calls', call: call.record } };
  if (begun === 'after_wait') return { kind: 'facts_changed' };
  const failure = await listTools(services, call, { ...connected, grant: verdict.grant });
  if (failure === undefined) {
    const who = await reloadPrincipal(services, call.who, call.action.platform);
    return { kind: 'listed', who, now: services.broker.clock() };
  }
  // A changed tool is refused as such, even when its server cannot be listed.
  if (hasChanged) return UNNEEDED;
  return {
    kind: 'failed',
    outcome: await concludeCall(services, call, { ...connected, trials: [], forwarded: failure }),
  };
}

/** Stores the server's tools. Errors become an answer, because the server was contacted and the call needs an audit row. */
async function listTools(
  services: CallServices,
  call: Call,
  request: Omit<McpRequest, 'credential' | 'attested'> & Extract<Connected, { ok: true }>,
): Promise<Concluded | undefined> {
  let isListed = false;
  try {
    const listed = await services.recorder.readFirst(intentRow(listRecord(call.record)), () =>
      forwardFresh(services, call, request, {
        send: async (fresh) => {
          const unlisted = await whyUnlisted(services, call, { ...request, credential: fresh, attested: { turns: 0 } });
          isListed = unlisted === undefined;
          return unlisted ?? LISTED;
        },
        // The call is decided again after listing anyway.
        decideAgain: async () => undefined,
      }),
    );
    return isListed || !isConcluded(listed) ? undefined : listed;
  } catch (error) {
    services.broker.log.error(
      { err: error, auditId: call.record.auditId },
      'could not list the tools of an MCP server before a call',
    );
    return unreachable('tools_unknown', false);
  }
}

/** The record that remains if the process dies meanwhile: tools were requested, none was called. Small enough for a journal note. */
const listRecord = (record: CallRecord): CallRecord => {
  const { reason: _, ...asked } = record.asked;
  const agent = { ...record.agent, parentAgentId: null };
  return {
    ...record,
    agent,
    asked: { ...asked, method: 'GET' },
    path: '/tools',
    decided: undefined,
    droppedHeaders: [],
  };
};
