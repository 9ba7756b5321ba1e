// The terms of an approved registration: the requested scopes, or fewer.
/** @typedef {import('../../answers.ts').Registration} Registration */
import { html, useId } from '/console/html.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

const keyOf = (/** @type {string} */ platformId, /** @type {string} */ scope) => JSON.stringify([platformId, scope]);

const isKnown = (
  /** @type {Registration} */ { unknown_scopes },
  /** @type {string} */ platformId,
  /** @type {string} */ scope,
) => !unknown_scopes.some((one) => one.platformId === platformId && one.scopes.includes(scope));

/**
 * Returns the approval for the owner API. `left`: keys of scopes that are left out. The policy is the one on the screen.
 *
 * @param {Registration} asked
 * @param {ReadonlySet<string>} left
 * @param {string} name
 */
export function wordOf(asked, left, name) {
  const scopes = asked.requested_scopes
    .map(({ platformId, scopes }) => ({
      platformId,
      scopes: scopes.filter((scope) => isKnown(asked, platformId, scope) && !left.has(keyOf(platformId, scope))),
    }))
    .filter(({ scopes }) => scopes.length > 0);
  return {
    scopes,
    ...(asked.policy && { policy: asked.policy.id }),
    ...(asked.namesake && name.trim() !== '' && { name: name.trim() }),
  };
}

const NOTHING = 'It asks for no scopes. As an agent it may call nothing until an admin grants it something.';

const Unknown = () => html`<span class="badge" data-kind="wait">not known here</span>`;

/**
 * The requested scopes, all selected at first. `leave` receives the keys of those that are left out.
 *
 * @param {{ asked: Registration, left: ReadonlySet<string>, leave: (left: Set<string>) => void }} props
 */
export function Scopes({ asked, left, leave }) {
  const id = useId();
  const pick = (/** @type {string} */ platformId, /** @type {string} */ scope, /** @type {string} */ at) => {
    const key = keyOf(platformId, scope);
    const known = isKnown(asked, platformId, scope);
    const change = checkedTo((checked) => {
      const now = new Set(left);
      if (checked) now.delete(key);
      else now.add(key);
      leave(now);
    });
    return html`
      <label class="choice" key=${key}>
        <input
          type="checkbox"
          checked=${known && !left.has(key)}
          disabled=${!known}
          aria-describedby=${known ? undefined : `${id}-${at}`}
          onChange=${change}
        />
        <span><code class="theirs">${visibleLine(scope)}</code>${!known && html` <span id="${id}-${at}"><${Unknown} /></span>`}</span>
      </label>
    `;
  };
  return html`
    <section class="part terms by-platform">
      <h3>Scopes to grant</h3>
      ${asked.requested_scopes.length === 0 && html`<p class="quiet">${NOTHING}</p>`}
      ${asked.requested_scopes.map(
        ({ platformId, scopes }, at) => html`
          <fieldset key=${platformId}>
            <legend>On <span class="theirs">${visibleLine(platformId)}</span></legend>
            <div class="asked-scopes">${scopes.map((scope, of) => pick(platformId, scope, `${at}-${of}`))}</div>
          </fieldset>
        `,
      )}
      ${asked.unknown_scopes.length > 0 && html`<p class="quiet small">Scopes that none of your platforms has are not granted.</p>`}
    </section>
  `;
}

/**
 * The same for an owner who may not decide.
 *
 * @param {{ asked: Registration }} props
 */
export const RequestedScopes = ({ asked }) => html`
  <section class="part">
    <h3>What it asks for</h3>
    ${asked.requested_scopes.length === 0 && html`<p class="quiet">${NOTHING}</p>`}
    <dl class="facts">
      ${asked.requested_scopes.map(
        ({ platformId, scopes }) => html`
          <dt class="theirs">${visibleLine(platformId)}</dt>
          <dd class="theirs">
            ${scopes.map((scope) => html`<div><code>${visibleLine(scope)}</code> ${!isKnown(asked, platformId, scope) && html`<${Unknown} />`}</div>`)}
          </dd>
        `,
      )}
    </dl>
  </section>
`;

/**
 * A field for another name when an agent with the requested name exists: two agents with one name are confused.
 *
 * @param {{ asked: Registration, name: string, change: (name: string) => void }} props
 */
export const NewName = ({ asked: { agent_name, namesake }, name, change }) => html`
  <section class="part terms">
    <p class="notice" data-kind="bad">
      <span>You have an agent called <strong class="theirs">${visibleLine(agent_name)}</strong> already (<code>${namesake}</code>). This is another one.</span>
    </p>
    <div class="field">
      <label for="new-name">What to call this one</label>
      <input id="new-name" maxlength="100" autocomplete="off" value=${name} onInput=${valueTo(change)} />
    </div>
  </section>
`;
