// What is known about a connection's state, in its row.
/** @typedef {import('../../answers.ts').Connection} Connection */
import { badgeOf, outcomeOf, STATE } from '/console/connections/connection-labels.js';
import { html } from '/console/html.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ connection: Connection }} props */
export function OutcomeBadge({ connection }) {
  const { kind, words, at } = badgeOf(connection);
  return html`<span class="badge" data-kind=${kind}>${words}${at && html` <${Ago} at=${at} />`}</span>`;
}

/** The result of the last test or use, in words, and which scopes need further consent at the platform. @param {{ connection: Connection }} props */
export function OutcomeDetail({ connection }) {
  const { state, lacks_consent_for: lacking } = connection;
  const outcome = state === 'not_connected' ? undefined : outcomeOf(connection);
  return html`
    ${outcome && html`<p class="small ${outcome.kind === 'bad' ? 'why' : 'quiet'} outcome">${visibleLine(outcome.detail)}${STATE[state] && html` (<${Ago} at=${outcome.at} />)`}</p>`}
    ${
      lacking.length > 0 &&
      html`<p class="small why lacking">The platform has not consented to what these scopes need: ${lacking.map((scope, at) => html`${at > 0 && ', '}<code class="theirs">${visibleLine(scope)}</code>`)}. Calls with them are refused until it is connected again with more.</p>`
    }
  `;
}
