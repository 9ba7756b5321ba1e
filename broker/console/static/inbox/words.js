// What waits and what became of it, in sentences.
import { visibleLine } from '/console/visible.js';

const REASONS = {
  approval_required_by_policy: 'its policy',
  approval_required_by_guardrail: 'a guardrail',
  approval_required_by_grant: 'its grant, as every call with it',
};

/** Which rule held a call: `rule refunds-wait`, `guardrail no-deletes`. */
export function heldBy({ reason, detail, rules }) {
  const holding = rules.filter(({ effect }) => effect === 'require_approval');
  if (holding.length === 0) return REASONS[reason] ?? visibleLine(detail ?? reason);
  return holding.map(ruleInWords).join(' and ');
}

/** One that has no name of its own is called `rule 2` already. */
const ruleInWords = ({ source, name }) =>
  source === 'guardrail'
    ? `guardrail ${visibleLine(name)}`
    : visibleLine(/^rule \d+$/.test(name) ? name : `rule ${name}`);

const LACKS = {
  not_connected: 'The platform is not connected',
  not_granted: 'It is not granted',
  grant_expired: 'Its grant is over',
  needs_consent: 'The connection needs more consent',
  scope_denied: 'Its policy or a guardrail denies it',
};

/** Why an agent could not, when it asked for access. */
export const lackInWords = (reasonCode) => LACKS[reasonCode] ?? reasonCode.replaceAll('_', ' ');

/** What an access request is about, for a title: a scope, or the platform as a whole. */
export const askedScope = ({ scope }) => (scope === null ? 'access' : visibleLine(scope));

/** What waits, in one line, for where there is no markup: `POST /refunds on sandbox for triage`. */
export const oneLine = ({ kind, item }) =>
  visibleLine(
    `${kind === 'approval' ? `${item.method} ${item.path}` : askedScope(item)} on ${item.platform} for ${item.agent.name}`,
  );

const byWhom = ({ decided_by_email }) => (decided_by_email ? ` by ${visibleLine(decided_by_email)}` : '');

const EXPIRED = { kind: '', words: 'Nobody decided in time. The agent has to ask again.' };
const GONE = { kind: '', words: 'It no longer waits.' };

/** What became of a held call, as the owner API states it: `kind` is good, bad or nothing. */
function ofCall(held) {
  const by = byWhom(held);
  if (held.status === 'denied') return { kind: 'bad', words: `Denied${by}. The call is never made.` };
  if (held.status === 'expired') return EXPIRED;
  if (held.status !== 'approved') return GONE;
  if (held.execution_error)
    return { kind: 'bad', words: `Approved${by}, but not made: ${visibleLine(held.execution_error)}` };
  if (!held.executed_at) return { kind: 'good', words: `Approved${by}. The call is under way.` };
  const answer = visibleLine(held.result_summary ?? 'the platform answered');
  return { kind: 'good', words: `Approved${by} and made: ${answer}.` };
}

function ofRequest(request) {
  const by = byWhom(request);
  if (request.status === 'denied') return { kind: 'bad', words: `Denied${by}.` };
  if (request.status === 'expired') return EXPIRED;
  if (request.status !== 'approved') return GONE;
  const granted = `Granted${by}: ${visibleLine((request.granted ?? []).join(', '))}.`;
  const steps = (request.next_steps ?? []).map(({ detail }) => visibleLine(detail));
  return steps.length > 0
    ? { kind: 'wait', words: `${granted} Still to do: ${steps.join(' ')}` }
    : { kind: 'good', words: `${granted} It is in force now.` };
}

/** What became of one that waited: `kind` is good, wait, bad or nothing. */
export const whatBecame = (kind, item) => (kind === 'approval' ? ofCall(item) : ofRequest(item));
