// The grant that an approval of an access request would create.
/** @typedef {import('../../answers.ts').AccessRequest} AccessRequest */
import { html } from '/console/html.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

const DAY_S = 24 * 3600;
/** @type {[value: string, words: string][]} */
const DURATIONS = [
  ['same', 'As long as the grant lasts now'],
  [String(3600), '1 hour'],
  [String(DAY_S), '1 day'],
  [String(7 * DAY_S), '7 days'],
  [String(30 * DAY_S), '30 days'],
  ['', 'No expiry'],
];

/** The default duration of a new grant. An agent that needs it longer asks again, or the deciding owner chooses longer. */
const DEFAULT_DURATION = String(30 * DAY_S);

/** @typedef {Pick<AccessRequest, 'grants' | 'connections'>} Ground */
/** @typedef {{ scopes: string[], lasts: string, approval: boolean, connection: string }} AccessTerms */
/** The terms that the owner chose so far. @typedef {{ [Name in keyof AccessTerms]?: AccessTerms[Name] | undefined }} Said */

/**
 * Whether a connection has to be named: the agent has grants on several connections, and none on the default one.
 *
 * @param {Ground} ground
 */
export function hasToChoose({ grants, connections }) {
  const standard = connections.find((each) => each.default)?.connection_id;
  const named = new Set(grants.map((grant) => grant.connection?.connection_id ?? standard ?? null));
  return named.size > 1 && !named.has(standard ?? null) && !named.has(null);
}

/**
 * Returns the grant that gains the scopes, as the broker would choose it: `connection` is empty when none is named.
 *
 * @param {Ground} ground
 */
export function grantOn({ grants, connections }, connection = '') {
  const standard = connections.find((each) => each.default)?.connection_id;
  const on = (/** @type {string | null | undefined} */ id) =>
    grants.find((grant) => (grant.connection?.connection_id ?? null) === id);
  if (connection) return on(connection) ?? (connection === standard ? on(null) : undefined);
  return on(null) ?? on(standard) ?? (hasToChoose({ grants, connections }) ? undefined : grants[0]);
}

/**
 * Returns the initial terms: exactly the requested scopes, for 30 days. An existing grant keeps its expiry.
 *
 * @param {AccessRequest} request
 * @param {string | undefined} connection
 */
export function startingTerms(request, connection) {
  const grant = grantOn(request, connection);
  return {
    scopes: request.scope === null ? [] : [request.scope],
    lasts: grant && !grant.expired ? 'same' : DEFAULT_DURATION,
    approval: grant?.require_approval ?? false,
  };
}

/** Converts the terms for the owner API. */
export const wordOf = (/** @type {AccessTerms} */ { scopes, lasts, approval, connection }) => ({
  scopes,
  require_approval: approval,
  ...(lasts !== 'same' && { expires_in_seconds: lasts === '' ? null : Number(lasts) }),
  ...(connection && { connection_id: connection }),
});

/**
 * `change(more)` receives the changed terms.
 *
 * @param {{ request: AccessRequest, terms: AccessTerms, change: (more: Said) => void }} props
 */
export function Terms({ request, terms, change }) {
  const { platform_scopes, scope, connections } = request;
  const grant = grantOn(request, terms.connection);
  const held = new Set(grant && !grant.expired ? grant.scopes : []);
  const others = platform_scopes.filter((each) => each !== scope && !held.has(each));
  const pick = (/** @type {string} */ each) => html`
    <label class="choice" key=${each}>
      <input
        type="checkbox"
        checked=${terms.scopes.includes(each)}
        onChange=${checkedTo((checked) => change({ scopes: checked ? [...terms.scopes, each] : terms.scopes.filter((one) => one !== each) }))}
      />
      <code class="theirs">${visibleLine(each)}</code>
    </label>
  `;
  const lasts = DURATIONS.filter(([value]) => value !== 'same' || (grant && !grant.expired));
  return html`
    <section class="part terms">
      <fieldset>
        <legend>Scopes to grant</legend>
        ${scope !== null && pick(scope)}
        ${
          others.length > 0 &&
          html`<details open=${scope === null}>
            <summary class="small">${scope === null ? 'Scopes' : 'More scopes'} of ${visibleLine(request.platform_name)} (${others.length})</summary>
            <div class="more-scopes">${others.map(pick)}</div>
          </details>`
        }
      </fieldset>
      <div class="field">
        <label for="lasts">For how long</label>
        <select id="lasts" onChange=${valueTo((lasts) => change({ lasts }))}>
          ${lasts.map(([value, words]) => html`<option value=${value} selected=${value === terms.lasts}>${words}</option>`)}
        </select>
      </div>
      ${
        connections.length > 1 &&
        html`<div class="field">
          <label for="connection">On which connection</label>
          <select id="connection" onChange=${valueTo((connection) => change({ connection, lasts: undefined, approval: undefined }))}>
            <option value="">${hasToChoose(request) ? 'Choose one: calls have to name it' : 'The one that calls use when they name none'}</option>
            ${connections.map(({ connection_id, label }) => html`<option value=${connection_id} selected=${terms.connection === connection_id}>${visibleLine(label)}</option>`)}
          </select>
        </div>`
      }
      <label class="choice">
        <input type="checkbox" checked=${terms.approval} onChange=${checkedTo((approval) => change({ approval }))} />
        <span>Every call with this grant waits for an approval</span>
      </label>
    </section>
  `;
}
