/** A call that may be made: its intent is stored, it is sent, and how it ended is recorded. */
import type { Replay } from '../approvals/replay.ts';
import { mayBeSent, type Outcome } from '../audit/outcome.ts';
import type { Recorded } from '../audit/recorder.ts';
import { intentRow, rowOf } from '../audit/row.ts';
import type { Ask, Verdict } from '../policy/facts.ts';
import { type Call, withRecord } from './call.ts';
import type { CallServices } from './call-services.ts';
import { concludeCall } from './conclude.ts';
import type { Connected } from './connect.ts';
import { isReadStep } from './git-request.ts';
import { refuse } from './refusal.ts';
import { sendCall } from './send.ts';
import { refuseTool } from './tool-on-file.ts';

type Cleared = {
  connected: Extract<Connected, { ok: true }>;
  verdict: Exclude<Verdict, { kind: 'deny' }>;
  ask: Ask;
  trials: Parameters<typeof concludeCall>[2]['trials'];
  replay: Replay | undefined;
};

/** From here on the platform may act: the intent is stored first. */
export async function makeCall(
  services: CallServices,
  call: Call,
  { connected, verdict, ask, trials, replay }: Cleared,
): Promise<Recorded<Outcome>> {
  const { recorder } = services;
  const send = async (makeDurable: () => Promise<void>): Promise<Recorded<Outcome>> => {
    const forwarded = await sendCall(
      services,
      { ...call, makeDurable },
      { ...connected, verdict, ask, isApproved: replay !== undefined },
    );
    const made = forwarded.refreshUnavailable ? withRecord(call, { refreshUnavailable: true }) : call;
    if (forwarded.kind === 'denied_meanwhile') {
      const decided = withRecord(made, { decided: forwarded.decided });
      return await recordOutcome(services, await refuse(services, decided, forwarded.verdict), replay);
    }
    const outcome =
      forwarded.kind === 'quarantined'
        ? refuseTool(made, verdict, forwarded.detail)
        : await concludeCall(services, made, { ...connected, trials, forwarded });
    return await recordOutcome(services, outcome, replay);
  };
  const isRead = call.git ? isReadStep(call.git.step) : call.raw && call.action.method === 'GET';
  const isStreamed = call.taker !== undefined && !isRead;
  const intent = intentRow(call.record, call.taker !== undefined);
  return await recorder.intend(intent, send, {
    companion: replay?.companion,
    isStreamed,
    ...(isRead && { isRead }),
  });
}

/** Puts an outcome on record; only then it can be answered. */
export const recordOutcome = (
  { recorder }: CallServices,
  outcome: Outcome,
  replay: Replay | undefined,
  after?: () => Promise<Outcome>,
): Promise<Recorded<Outcome>> =>
  recorder.record<Outcome>({
    row: rowOf(outcome),
    value: outcome,
    sent: mayBeSent(outcome),
    companion: replay?.companion,
    ...(after && { after }),
  });
