/** An agent's own held calls (specification, Approval; Pending actions). */
import { z } from 'zod';
import { sentenceOfHeld } from '../../approvals/held-sentence.ts';
import { findOwnApproval, listOwnApprovals, readCorrected, readResult } from '../../approvals/own-approvals.ts';
import { shownResult } from '../../approvals/sealed.ts';
import { isSettled, statusAt } from '../../audit/approval-state.ts';
import type { Broker } from '../../broker.ts';
import { noteAnswerAgain, whyNotAgain } from '../../calls/answer-again.ts';
import { UUID_PATTERN } from '../../crypto/ids.ts';
import type { AccessEnded } from '../../policy/access-ended.ts';
import { plainSentence } from '../../sentences/part.ts';
import { Approval, PendingActions } from '../approval-answers.ts';
import { currentPrincipal } from '../current-principal.ts';
import { Refusal } from '../errors.ts';
import { approversOf, approveUrl } from '../held-call.ts';
import { instant, json, type Reply } from '../reply.ts';
import { route } from '../route.ts';
import { sentence } from '../unready.ts';
import { Waiting, waitForNews } from '../waiting.ts';

type Own = NonNullable<Awaited<ReturnType<typeof findOwnApproval>>>;

/** GET /v1/approvals/{id}: with `?wait=` answers as soon as the state is final, or on timeout. */
export const approval = route({
  method: 'GET',
  path: '/v1/approvals/{id}',
  auth: 'agent',
  limit: { name: 'approvals', perMinute: 60, per: 'agent' },
  capability: 'approvals.read',
  summary: 'One held call of this agent: its status, and once it was approved and made, the answer of the platform.',
  params: { id: z.guid().describe('the approval_id') },
  query: Waiting,
  answers: { 200: { description: 'The approval.', schema: Approval } },
  errors: ['invalid_id', 'invalid_request', 'not_found', 'rate_limited'],
  handle: async (context) => {
    const { services, params, query } = context;
    const waitMs = query.wait;
    const id = params.id.toLowerCase();
    if (!UUID_PATTERN.test(id)) throw new Refusal('invalid_id', 'The id of an approval is a UUID.');
    const read = async (): Promise<Own> => {
      const found = await findOwnApproval(services.broker, context.who.agent, id);
      if (!found) throw new Refusal('not_found', 'This agent has no such approval.');
      return found;
    };
    const changesAt = ({ status, expires_at }: Own) => (status === 'pending' ? expires_at : Number.POSITIVE_INFINITY);
    const options = { waitMs, isSettled, changesAt };
    const found = waitMs === 0 ? await read() : await waitForNews(context, id, read, options);
    const who = waitMs === 0 ? context.who : await currentPrincipal(context, '');
    if (found.exec_state !== 'done' || found.replay_audit_id === null) return shown(services.broker, found);
    const ended = await whyNotAgain(services, who, found.replay_audit_id);
    if (ended) return shown(services.broker, found, withheld(ended));
    await noteAnswerAgain(services, who, found.replay_audit_id);
    return shown(services.broker, found);
  },
});

/** Builds the answer. The result is JSON text already, so that the platform's numbers keep their digits. `withheld`: why the result is not given. */
async function shown(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'log' | 'store' | 'vault'>,
  found: Own,
  withheld?: string,
): Promise<Reply> {
  const facts = {
    approval_id: found.id,
    status: statusAt(found, broker.clock()),
    approval_url: approveUrl(broker, found.id),
    sentence: plainSentence(sentenceOfHeld(broker, found)),
    created_at: instant(found.created_at),
    expires_at: instant(found.expires_at),
    executed_at: instant(found.executed_at),
    ...(found.execution_error !== null && { execution_error: found.execution_error }),
    ...(found.approvers !== null && { approvers: await approversOf(broker, found) }),
    ...correctedOf(broker, found),
    ...(found.note !== null && { note: found.note }),
    audit_id: found.replay_audit_id ?? found.audit_id,
  };
  const result = withheld === undefined ? readResult(broker, found) : undefined;
  const failed = result === 'unreadable' ? UNREADABLE : withheld;
  const text = JSON.stringify(failed === undefined ? facts : { ...facts, execution_error: failed });
  return {
    status: 200,
    body:
      result === undefined || result === 'unreadable' ? text : `${text.slice(0, -1)},"result":${shownResult(result)}}`,
  };
}

/** Returns the text in place of a call's result, when the agent could not make the call any more. */
const withheld = ({ detail }: AccessEnded): string =>
  `result_withheld: The call was made. Its response is not returned, because the agent could not make the call now: ${sentence(detail)} Do not repeat it.`;

function correctedOf(broker: Pick<Broker, 'log' | 'vault'>, found: Own) {
  const corrected = readCorrected(broker, found);
  return corrected ? { corrected: { at: instant(found.corrected_at), ...corrected } } : {};
}

const UNREADABLE =
  'result_unreadable: The call was made, but its stored answer cannot be decrypted. Check the platform.';

/** GET /v1/agents/me/pending-actions: pending calls, and those decided or expired within 24 hours. */
export const pendingActions = route({
  method: 'GET',
  path: '/v1/agents/me/pending-actions',
  auth: 'agent',
  limit: { name: 'pending-actions', perMinute: 30, per: 'agent' },
  capability: 'approvals.list',
  summary: 'Held calls of this agent that wait, and those of the last 24 hours that no longer do.',
  answers: { 200: { description: 'Both lists, newest first.', schema: PendingActions } },
  errors: ['rate_limited'],
  handle: async ({ services: { broker }, who }) => {
    const { pending, completed } = await listOwnApprovals(broker, who.agent);
    const item = (one: (typeof pending)[number]) => ({
      approval_id: one.id,
      platform_id: one.platform_id,
      scope: one.scope,
      created_at: instant(one.created_at),
    });
    return json(200, {
      pending: pending.map((one) => ({ ...item(one), expires_at: instant(one.expires_at) })),
      recently_completed: completed.map((one) => ({
        ...item(one),
        status: one.status,
        executed_at: instant(one.executed_at),
        result_summary: one.result_summary,
        execution_error: one.execution_error,
      })),
    });
  },
});
