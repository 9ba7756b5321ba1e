/** A tool that nothing is known of, or that changed: its MCP server is asked for its tools before the call is decided. */
import type { Replay } from '../approvals/replay.ts';
import type { CallRecord, Outcome } from '../audit/outcome.ts';
import { intentRow } from '../audit/row.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { unreachable } from '../egress/unreachable.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import { decide } from '../policy/decide.ts';
import type { Ask, Instant } from '../policy/facts.ts';
import { beginCall, type Call, decidedBy, withRecord } from './call.ts';
import type { CallServices } from './call-services.ts';
import { concludeCall } from './conclude.ts';
import { type Connected, connect } from './connect.ts';
import { type McpRequest, whyUnlisted } from './forward-mcp.ts';
import { type Concluded, type Forwarded, isConcluded } from './forwarded.ts';
import { reloadPrincipal } from './reload.ts';
import { forwardFresh } from './send.ts';
import { mayBeAccepted, type ToolOnFile, whyQuarantined, withEffect } from './tool-on-file.ts';

/** `listed`: the tools are on file now, and who asked for the call is as they are at `now`. */
export type Preflight =
  | { kind: 'unneeded' }
  /** The call waited for its place. */
  | { kind: 'facts_changed' }
  | { kind: 'listed'; who: AgentPrincipal; now: Instant }
  | { kind: 'failed'; outcome: Outcome };

const UNNEEDED: Preflight = { kind: 'unneeded' };

/** The server has answered, and nobody is told what. */
const LISTED: Forwarded = {
  kind: 'answer',
  status: 200,
  read: { kind: 'data', data: 'null', redacted: false, bytes: 0 },
};

/** Lists the server's tools where that can change the decision, and only for a call that would go on as things are. */
export async function toolPreflight(
  services: CallServices,
  given: Call,
  at: { loaded: LoadedFacts; onFile: ToolOnFile; ask: Ask; now: Instant; replay: Replay | undefined },
): Promise<Preflight> {
  const { loaded, onFile, now, replay } = at;
  const hasChanged = whyQuarantined(onFile) !== undefined;
  if (!onFile.isFirst && !(hasChanged && mayBeAccepted(onFile))) return UNNEEDED;
  const verdict = decide(loaded.facts, withEffect(at.ask, onFile), now);
  if (verdict.kind === 'deny') return UNNEEDED;
  const connected = await connect(services, given, loaded, verdict.grant);
  if (!connected.ok) return UNNEEDED;
  if (replay && replay.connectionId !== null && connected.connection.id !== replay.connectionId) return UNNEEDED;
  if (hasChanged && !services.toolChecks.take(onFile.place, now)) return UNNEEDED;
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
  // The tool on file is refused for what it is, whatever its server says.
  if (hasChanged) return UNNEEDED;
  return {
    kind: 'failed',
    outcome: await concludeCall(services, call, { ...connected, trials: [], forwarded: failure }),
  };
}

/** Puts the tools on file. Whatever goes wrong comes out as an answer: the server was asked, so the call has to have a row. */
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
        // Whatever the list says, the call is decided again after it.
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

/** What is on record if the process dies meanwhile: the tools were asked for, and no tool was called. It fits into a note. */
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
