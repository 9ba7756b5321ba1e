// A held call that no longer waits: its outcome.
/** @typedef {import('../../answers.ts').DecidedCall} DecidedCall */
/** @typedef {import('../../answers.ts').DecidedNow} DecidedNow */
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
/** @typedef {import('/console/approve/held.js').Answered} Answered */
/** @typedef {import('/console/approve/held.js').Me} Me */
/** @typedef {import('/console/approve/held.js').Status} Status */
/** @typedef {import('/console/approve/held.js').Waits} Waits */
import { html, useLayoutEffect, useRef } from '/console/html.js';
import { platformAnswer } from '/console/request-view/answer.js';
import { CallTitle } from '/console/request-view/call-title.js';
import { visible, visibleLine } from '/console/visible.js';

const at = (/** @type {string | null} */ moment) => {
  const date = new Date(moment ?? Number.NaN);
  const today = date.toDateString() === new Date().toDateString();
  return today
    ? `at ${date.toLocaleTimeString([], { timeStyle: 'short' })}`
    : `on ${date.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })}`;
};

/** @typedef {{ kind: keyof typeof SIGNS, title: string, text: string, busy?: boolean }} OutcomeText */

/**
 * Returns kind, title and sentence of the outcome. `mine`: the decision made just now on this page. `agent`: as far as the viewer may see it.
 *
 * @param {DecidedCall} outcome
 * @param {Status | undefined} mine
 * @param {HeldCall['agent'] | undefined} agent
 * @returns {OutcomeText}
 */
function outcomeText({ status, decided_at, executed_at, execution_error, result_summary, expires_at }, mine, agent) {
  if (status === 'expired' && agent?.ended)
    return {
      kind: 'quiet',
      title: 'Ended with its agent',
      text: `The agent was revoked, or its time was over. The call is never made; it ended ${at(expires_at)}.`,
    };
  if (status === 'expired')
    return {
      kind: 'quiet',
      title: 'Too late',
      text: `Nobody decided in time; it expired ${at(expires_at)}. The agent may ask again.`,
    };
  if (status === 'denied')
    return {
      kind: 'bad',
      title: mine === 'denied' ? 'Denied' : 'Denied already',
      text: `The call is never made. Decided ${at(decided_at)}.`,
    };
  const title = mine === 'approved' ? 'Approved' : 'Approved already';
  if (execution_error !== null) {
    const unknown = execution_error.startsWith('outcome unknown');
    const made = executed_at !== null;
    return {
      kind: unknown || made ? 'wait' : 'bad',
      title: unknown ? 'Approved, outcome unknown' : made ? 'Approved and made' : 'Approved, but not made',
      text: visible(execution_error),
    };
  }
  if (executed_at === null)
    return {
      kind: 'wait',
      title,
      text: 'The call is under way. You may close this page; the call continues.',
      busy: true,
    };
  const { kind, words } = platformAnswer(visibleLine(result_summary ?? ''));
  if (kind !== 'good') return { kind, title, text: `The call was made ${at(executed_at)}, and ${words}.` };
  return {
    kind,
    title,
    text: `The call was made ${at(executed_at)}. The platform answered: ${visibleLine(result_summary ?? '')}.`,
  };
}

/** SVG paths on a grid of 24 by 24. */
const SIGNS = {
  good: 'M5 12.5l4.5 4.5L19 7.5',
  bad: 'M6.5 6.5l11 11m0-11l-11 11',
  wait: 'M12 5v9m0 4.5v.5',
  quiet: 'M6 12h12',
};

/** @param {Pick<OutcomeText, 'kind' | 'busy'>} props */
const Sign = ({ kind, busy }) => html`<div class="sign ${busy ? 'busy' : ''}" aria-hidden="true">
  ${
    !busy &&
    html`<svg viewBox="0 0 24 24" width="36" height="36" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round">
      <path d=${SIGNS[kind]} />
    </svg>`
  }
</div>`;

const HOW = {
  passkey: 'by passkey',
  console: 'signed in, by a click',
  api: 'by the API',
  channel: 'by a button in a chat',
};

/**
 * `held`: the request as last seen, if it was loaded.
 *
 * @param {{ outcome: DecidedCall, details?: HeldCall, held?: Waits, mine?: Status, answered?: Answered, me: Me | null | undefined }} props
 */
export function Outcome({ outcome, details, held, mine, answered, me }) {
  const { kind, title, text, busy } = outcomeText(outcome, mine, details?.agent);
  const said = details?.platform_message ?? answered?.now?.platform_message;
  const waiting = answered?.now?.waiting;
  const first = answered?.first;
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  // Moves the focus to the heading, so that a screen reader reads the outcome and keyboard navigation continues from here.
  useLayoutEffect(() => heading.current?.focus(), []);
  return html`<section class="settled outcome" data-kind=${kind}>
    <${Sign} kind=${kind} busy=${busy} />
    <h1 tabindex="-1" ref=${heading}>${title}</h1>
    <p role="status">${text}</p>
    ${held?.request && html`<p class="small theirs what"><${CallTitle} held=${held} over /></p>`}
    ${said && html`<p class="theirs what"><span class="quiet small">The platform says:</span> ${visible(said)}</p>`}
    ${first && html`<p class="quiet small"><span class="theirs">${visibleLine(first)}</span> was first.</p>`}
    ${
      !first &&
      details?.decided_by_email &&
      html`<p class="quiet small">${visibleLine(details.decided_by_email)} decided ${details.how && HOW[details.how]}.</p>`
    }
    ${details?.note && html`<p class="quiet small theirs">Note for the agent: “${visible(details.note)}”</p>`}
    ${waiting && html`<${Next} waiting=${waiting} />`}
    ${me && html`<p><a class="button" href="/console">To the console</a></p>`}
  </section>`;
}

/**
 * The link to the next waiting call, for the owner who has just decided.
 *
 * @param {{ waiting: NonNullable<DecidedNow['waiting']> }} props
 */
const Next = ({ waiting: { approvals, next } }) =>
  next === null
    ? html`<p class="quiet small">No other call waits.</p>`
    : html`<p><a class="button primary next" href="/approve/${next}">Next one (${approvals} ${approvals === 1 ? 'waits' : 'wait'})</a></p>`;
