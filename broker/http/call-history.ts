/** The history of a held call, step by step, shown to owners beside its audit rows. */
import { z } from 'zod';
import { approvedBefore, howDecided } from '../audit/approval-state.ts';
import { shownFlags } from '../audit/audit-flags.ts';
import type { CallHistory, HistoryRow } from '../store/call-histories.ts';
import { RESULTS } from './audit-result.ts';

export const CallHistoryShown = z
  .array(
    z.object({
      step: z.enum(['held', 'corrected', 'approved_in_part', 'approved', 'denied', 'expired', 'made']),
      at: z.iso.datetime(),
      audit_id: z
        .guid()
        .nullable()
        .describe(
          'its row; null: nobody decided, so none was written, or it is that of a correction, of which there may be several',
        ),
      by: z.string().nullable().describe('the uuid of the owner who approved or decided, or corrected it last'),
      how: z.string().nullable().describe('console, api, passkey, or channel: by a button in a chat'),
      note: z.string().nullable().describe("the owner's words to the agent"),
      state: z.enum(['intent', 'final']).nullable().describe('intent: it may be under way'),
      result: z.enum(RESULTS).nullable(),
      reason: z.string().nullable(),
      upstream_status: z.int().nullable(),
      failed: z.boolean().describe("whether the platform's answer says in its body that it failed"),
      ended: z.string().nullable().describe('of a streamed answer: how it ended'),
      receipt_kid: z.string().nullable(),
    }),
  )
  .meta({ id: 'CallHistory' });

type Step = z.output<typeof CallHistoryShown>[number];

/** Returns the steps, oldest first: held; corrected; approved by all but the last person; approved, denied or expired; made. `now`: milliseconds. */
export function callHistoryShown(call: CallHistory, now: number): Step[] {
  const { held, decision, made } = call;
  const steps = [stepOf('held', call.created_at, held)];
  if (call.corrected_at !== null) steps.push({ ...stepOf('corrected', call.corrected_at), by: call.corrected_by });
  for (const { decided_at, decided_by, how, audit_id } of approvedBefore(call)) {
    const row = call.given.find(({ id }) => id === audit_id);
    steps.push({ ...stepOf('approved_in_part', Date.parse(decided_at), row), audit_id, by: decided_by, how });
  }
  if (call.status === 'approved' || call.status === 'denied') {
    const by = { by: call.decided_by, how: howDecided(call), note: call.note };
    steps.push({ ...stepOf(call.status, call.decided_at ?? call.created_at, decision), ...by });
  } else if (call.status === 'expired' || call.expires_at <= now) steps.push(stepOf('expired', call.expires_at));
  if (made) steps.push(stepOf('made', made.created_at, made));
  return steps;
}

function stepOf(step: Step['step'], at: number, row?: HistoryRow): Step {
  const { failed, ended } = row ? shownFlags(row) : {};
  return {
    step,
    at: new Date(at).toISOString(),
    audit_id: row?.id ?? null,
    by: null,
    how: null,
    note: null,
    state: row?.state ?? null,
    result: row?.result ?? null,
    reason: row?.reason ?? null,
    upstream_status: row?.upstream_status ?? null,
    failed: failed === true,
    ended: ended ?? null,
    receipt_kid: row?.receipt_kid ?? null,
  };
}
