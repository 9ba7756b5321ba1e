/** The governed call from door to door (specification, Governed call; architecture, The way of a governed call). */

import { askConsent } from '../approvals/ask-consent.ts';
import { requestHash, requestOf } from '../approvals/held-request.ts';
import { hold } from '../approvals/hold.ts';
import { type Replay, refuseReplay } from '../approvals/replay.ts';
import type { Outcome } from '../audit/outcome.ts';
import { piiOfRequest } from '../audit/pii.ts';
import type { Recorded, Recorder } from '../audit/record.ts';
import type { Changing } from '../audit/record-change.ts';
import { beginRow, noteFlags } from '../audit/row.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { uuidv7 } from '../crypto/ids.ts';
import { decide, decideAgent } from '../policy/decide.ts';
import type { Instant, Verdict } from '../policy/facts.ts';
import { toolOf } from '../policy/tool-endpoint.ts';
import type { AuditRow } from '../store/audit.ts';
import type { Action } from '../wire/action.ts';
import { closeByDecision, countFailure, giveBack, takeTrials } from './breakers.ts';
import { type Call, noteVerdict } from './call.ts';
import type { CallServices } from './call-services.ts';
import { conclude } from './conclude.ts';
import { connect } from './connect.ts';
import { decideAgain } from './decide-again.ts';
import { anew, listFirst } from './first-list.ts';
import { forward } from './forward.ts';
import { forwardFresh } from './forward-fresh.ts';
import { forwardMcp } from './forward-mcp.ts';
import { askOf, readCall } from './read-call.ts';
import { refuseStopped } from './stopped.ts';
import { afterRefusal } from './suspend.ts';
import { heldBack, mayBeAccepted, toolOnFile, unlikeAccepted, whyHeldBack, withEffect } from './tool-on-file.ts';

/** `now`: the moment at which the call is decided. */
export type ActOptions = { correlationId: string; auditId?: string; now?: Instant; replay?: Replay };

/**
 * Decides, and holds, refuses or makes the call. Every answer is recorded before it is given; throws AuditUnavailable
 * when it cannot be.
 */
export async function act(
  services: CallServices,
  who: AgentPrincipal,
  action: Action,
  { correlationId, now = services.broker.clock(), auditId = uuidv7(now), replay }: ActOptions,
): Promise<Recorded<Outcome>> {
  const { broker, recorder } = services;
  const row = beginRow(who, action, { auditId, correlationId }, broker);
  row.pii = JSON.stringify(piiOfRequest(action));
  if (who.agent.parent_agent_id) noteFlags(row, { parent: who.agent.parent_agent_id });
  if (replay) {
    row.approval_id = replay.approvalId;
    noteFlags(row, { approval: replay.provenance });
    recorder.accompany(row, replay.companion);
  }
  return await decideAndMake(services, { who, action, row, now, replay, isListed: false });
}

/** A call on today's facts. `isListed`: the server of its tool has just been asked what it offers. */
type Turn = {
  who: AgentPrincipal;
  action: Action;
  row: AuditRow;
  now: Instant;
  replay: Replay | undefined;
  isListed: boolean;
};

async function decideAndMake(services: CallServices, turn: Turn): Promise<Recorded<Outcome>> {
  const { broker, recorder } = services;
  const { who, action, row, now, replay, isListed } = turn;
  const loaded = await services.loadFacts(who.rows, action.platform, now);
  const read = readCall(action, loaded);
  if (!read.ok) {
    const stopped = decideAgent(loaded.facts, now);
    if (stopped) return await refuseStopped(services, row, loaded, stopped);
    row.result = 'errored';
    row.reason = read.code;
    row.detail = read.detail;
    if (!replay) await countFailure(services, who, 'breaker_api_error', action.platform);
    return await recorder.finish(
      row,
      { kind: 'invalid', auditId: row.id, code: read.code, detail: read.detail },
      false,
    );
  }
  const call: Call = { who, action, ...read.call, row };
  row.path = call.path;
  // A header that the platform takes for itself since then would be left out: not what was shown.
  if (replay && requestHash(requestOf(call)) !== replay.requestHash)
    return await refuseReplay(services, row, 'request_changed', 'The request would not be sent as it was approved.');
  const plain = askOf(action, call);
  const isMcp = loaded.platform?.rules.kind === 'mcp';
  const onFile = isMcp ? await toolOnFile(services, row.organisation_id, loaded.platform!, plain) : undefined;
  const ask = withEffect(plain, onFile);
  const verdict = decide(loaded.facts, ask, now);
  noteVerdict(row, verdict, loaded);
  if (verdict.kind === 'deny') return await refuse(services, call, verdict);
  const { breakers } = loaded.facts;
  // Of a replay nothing was signed.
  if (breakers.length > 0 && !replay) await closeByDecision(services, who, breakers);
  const connected = connect(services, call, loaded, verdict.grant?.id);
  if (!connected.ok) {
    row.result = connected.result;
    row.reason = connected.reason;
    const { outcome } = connected;
    return await (outcome.kind === 'needs_consent' && !replay
      ? recorder.finish<Outcome>(row, outcome, false, async () => ({
          ...outcome,
          ...(await askConsent(services, call)),
        }))
      : recorder.finish(row, outcome, false));
  }
  if (replay && replay.connectionId !== null && connected.connection.id !== replay.connectionId)
    return await refuseReplay(services, row, 'connection_changed', 'It would go through another connection now.');
  const held = whyHeldBack(onFile);
  if (onFile && (onFile.isFirst || held !== undefined)) {
    if (held !== undefined && !(mayBeAccepted(onFile) && !isListed && services.toolLooks.take(onFile.place, now)))
      return await refuseTool(services, call, verdict, held);
    if (isListed) return await refuseTool(services, call, verdict, heldBack(onFile.tool, undefined));
    const first = await listFirst(services, call, { ...connected, grant: verdict.grant });
    if (first.kind !== 'listed')
      return held !== undefined
        ? await refuseTool(services, call, verdict, held)
        : await recorder.intend(row, () => conclude(services, call, [], connected.connection, first));
    // Only now is it known what the tool does, and it may be two minutes later: nothing of before counts.
    return await decideAndMake(services, { ...turn, who: first.who, now: broker.clock(), isListed: true });
  }
  if (verdict.kind === 'hold') {
    if (!replay) {
      const held = await hold(services, call, verdict.detail);
      if (held !== 'over') return held;
      return await decideAndMake(services, { ...turn, who: await anew(services, call), now: broker.clock() });
    }
    row.reason = 'approved';
  }
  const trials = await takeTrials(broker, who, loaded.facts, action.platform, now);
  if (trials === undefined)
    return await decideAndMake(services, { ...turn, who: await anew(services, call), now: broker.clock() });
  const { platform, connection, credential } = connected;
  const { grant } = verdict;
  const sent = recorder.intend(row, async () => {
    const forwarded = await forwardFresh(
      services,
      platform.manifest,
      call,
      connection,
      credential,
      (fresh) =>
        isMcp
          ? forwardMcp(services, call, { ...connected, credential: fresh, grant }, toolOf(call.path))
          : forward(broker, platform.manifest, call, connection, fresh),
      () => decideAgain(services, call, ask, { connectionId: connection.id, isApproved: replay !== undefined }),
    );
    if (forwarded.kind === 'denied_meanwhile') return await refuse(services, call, forwarded.verdict);
    if (forwarded.kind === 'held_back') return await refuseTool(services, call, verdict, forwarded.detail);
    return await conclude(services, call, trials, connection, forwarded);
  });
  return await (trials.length > 0 ? sent.finally(() => giveBack(broker, trials)) : sent);
}

/** Refuses a tool that is not what was accepted: the server's doing, so it does not count against the agent. */
async function refuseTool(
  { recorder }: { recorder: Recorder },
  { row, dropped }: Call,
  decided: Verdict,
  detail: string,
): Promise<Recorded<Outcome>> {
  const verdict = unlikeAccepted(decided, detail);
  row.result = 'denied';
  row.reason = verdict.reason;
  row.detail = verdict.detail;
  noteFlags(row, { dropped_headers: dropped.length > 0 ? dropped : undefined });
  return await recorder.finish(row, { kind: 'denied', auditId: row.id, verdict }, false);
}

async function refuse(
  services: Changing,
  call: Call,
  verdict: Extract<Verdict, { kind: 'deny' }>,
): Promise<Recorded<Outcome>> {
  const { recorder } = services;
  const { row } = call;
  row.result = 'denied';
  noteFlags(row, { dropped_headers: call.dropped.length > 0 ? call.dropped : undefined });
  await afterRefusal(services, call, verdict);
  if (verdict.reason === 'agent_inactive')
    return await recorder.finish(row, { kind: 'inactive', auditId: row.id, detail: verdict.detail }, false);
  return await recorder.finish(row, { kind: 'denied', auditId: row.id, verdict }, false);
}
