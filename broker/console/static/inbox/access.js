// The view of an opened access request: what the agent lacks, and what it would get.
/** @typedef {import('../../answers.ts').AccessGrant} AccessGrant */
/** @typedef {import('../../answers.ts').AccessRequest} AccessRequest */
/** @typedef {import('/console/inbox/access-terms.js').AccessTerms} AccessTerms */
/** @typedef {import('/console/inbox/access-terms.js').Said} Said */
/** @typedef {import('/console/inbox/entries.js').AccessEntry} AccessEntry */
import { html, useState } from '/console/html.js';
import { grantOn, hasToChoose, startingTerms, Terms, wordOf } from '/console/inbox/access-terms.js';
import { Buttons } from '/console/inbox/buttons.js';
import { describeLack } from '/console/inbox/entry-text.js';
import { useShown, useWhole } from '/console/inbox/use-whole.js';
import { Lines, Unseen } from '/console/request-view/body.js';
import { formatMoment } from '/console/request-view/time-left.js';
import { AgentName } from '/console/shell/agent-name.js';
import { Failed, Loading } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { exactly } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/**
 * Props as for Approval; `shown` also receives the terms.
 *
 * @param {import('/console/inbox/entries.js').Opened<AccessEntry>} props
 */
export function Access({ entry, version, waits, busy, shown, act }) {
  const { whole: request, error, load } = useWhole(entry, version);
  const [changed, setChanged] = useState(/** @type {Said} */ ({}));
  const owner = useOwner();
  const terms = request && termsOf(request, changed);
  const lacking = request && terms && whatLacks(request, terms);
  const enough = terms !== undefined && lacking === undefined && mayChange(owner);
  useShown(shown, request, enough, terms && wordOf(terms));
  if (error) return html`<${Failed} error=${error} again=${load} />`;
  if (!request) return html`<${Loading} />`;
  return html`
    <div class="access">
      <${Facts} request=${request} waits=${waits} />
      ${
        waits &&
        mayChange(owner) &&
        html`<${Terms} request=${request} terms=${terms} change=${(/** @type {Said} */ more) => setChanged((before) => ({ ...before, ...more }))} />`
      }
      ${
        request.reason &&
        html`<section class="part from-agent">
          <h3>The agent’s own words</h3>
          <p class="quiet small">Why it asks. Nobody checked it.</p>
          <${Lines} text=${request.reason} label="The agent’s own words" />
          <${Unseen} text=${request.reason} />
        </section>`
      }
    </div>
    ${
      waits &&
      html`<${Buttons}
        approve=${mayChange(owner) && 'Approve…'}
        seen=${enough}
        why=${mayChange(owner) ? lacking : 'An admin can approve this, because it changes what the agent may do. You can deny it.'}
        busy=${busy}
        act=${act}
      />`
    }
  `;
}

/**
 * Returns what the owner has to choose before the request can be approved.
 *
 * @param {AccessRequest} request
 * @param {AccessTerms} terms
 */
function whatLacks(request, terms) {
  if (terms.scopes.length === 0) return 'Choose at least one scope, or deny.';
  if (terms.connection === '' && hasToChoose(request)) return 'Choose the connection that is meant, or deny.';
  return undefined;
}

/**
 * Returns the terms that the owner chose, completed from the grant on that connection.
 *
 * @param {AccessRequest} request
 * @param {Said} changed
 * @returns {AccessTerms}
 */
function termsOf(request, changed) {
  const said = Object.entries(changed).filter(([, value]) => value !== undefined);
  return { connection: '', ...startingTerms(request, changed.connection), ...Object.fromEntries(said) };
}

/** @param {{ request: AccessRequest, waits: boolean }} props */
function Facts({ request, waits }) {
  const { agent, reason_code } = request;
  const grant = grantOn(request);
  return html`
    <section class="part">
      <dl class="facts">
        <dt>Why not yet</dt>
        <dd>${describeLack(reason_code)}</dd>
        <dt>Has now</dt>
        <dd>${grant ? html`<${Grant} grant=${grant} />` : html`<span class="quiet">nothing on this platform</span>`}</dd>
        <dt>Agent</dt>
        <dd><${AgentName} agent=${agent} /> <code class="quiet small theirs">${agent.agent_id}</code>${agent.parent && html`<span class="quiet">, a child of <${AgentName} agent=${agent.parent} /></span>`}</dd>
        ${waits && html`<dt>Waits until</dt><dd>${formatMoment(request.expires_at)}</dd>`}
      </dl>
    </section>
  `;
}

/** @param {{ grant: AccessGrant }} props */
const Grant = ({ grant: { scopes, expires_at, expired, require_approval } }) => html`
  <span class="theirs">${scopes.map((scope) => html`<code>${visibleLine(scope)}</code> `)}</span>
  <span class="small quiet">
    ${expires_at && `${expired ? 'ended' : 'until'} ${exactly(expires_at)} `}
    ${require_approval && 'every call needs an approval'}
  </span>
`;
