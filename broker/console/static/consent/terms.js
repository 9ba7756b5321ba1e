// The agent as which a client is authorised: an existing one, or a new one and its grants.
/** @typedef {import('../../answers.ts').ConsentOffer} ConsentOffer */
/** @typedef {import('../../answers.ts').ScopesOn} ScopesOn */
/** @typedef {import('/console/html.js').Children} Children */
import { html, useId } from '/console/html.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

/** The maximum number of platforms that the broker accepts in one request. */
const MAX_PLATFORMS = 20;
const MAX_SCOPES = 100;

/** The choice of single scopes. */
export const SINGLE = 'single';

/** @typedef {ConsentOffer['platforms'][number]} OfferedPlatform */

/** @type {Partial<Record<string, (platform: OfferedPlatform) => string[]>>} */
const PRESETS = { reads: (one) => one.reads, all: (one) => one.all };

/**
 * @param {OfferedPlatform[]} platforms
 * @param {(platform: OfferedPlatform) => string[]} scopesOf
 */
const chosen = (platforms, scopesOf) =>
  platforms
    .filter(({ connected }) => connected)
    .map((one) => ({ platformId: one.platform, scopes: scopesOf(one).slice(0, MAX_SCOPES) }))
    .filter(({ scopes }) => scopes.length > 0)
    .slice(0, MAX_PLATFORMS);

/**
 * Returns the grants of a choice other than single scopes.
 *
 * @param {ConsentOffer} offer
 * @param {string} choice
 * @returns {ScopesOn}
 */
export const grantsOf = (offer, choice) =>
  offer.alike.find((one) => `like ${one.agent_id}` === choice)?.grants ??
  chosen(offer.platforms, PRESETS[choice] ?? (() => []));

/**
 * @typedef {object} TermsProps
 * @property {ConsentOffer} offer
 * @property {string} agent
 * @property {(agent: string) => void} setAgent
 * @property {string} name
 * @property {(name: string) => void} setName
 * @property {string} choice
 * @property {(choice: string) => void} choose
 * @property {ScopesOn} picked
 * @property {(picked: ScopesOn) => void} setPicked
 * @property {string | undefined} policy
 * @property {(policy: string) => void} setPolicy
 * @property {ScopesOn} grants
 */

/** @param {TermsProps} props */
export function Terms({
  offer,
  agent,
  setAgent,
  name,
  setName,
  choice,
  choose,
  picked,
  setPicked,
  policy,
  setPolicy,
  grants,
}) {
  const id = useId();
  const names = offer.platforms.filter(({ connected }) => connected).map((one) => visibleLine(one.name));
  const platforms = names.length === 0 ? 'what is connected' : html`<span class="theirs">${listOf(names)}</span>`;
  return html`
    ${
      offer.known.length > 0 &&
      html`<div class="field">
        <label for="${id}-agent">As which agent</label>
        <select id="${id}-agent" value=${agent} onChange=${valueTo(setAgent)}>
          <option value="">A new one</option>
          ${offer.known.map((one) => html`<option value=${one.agent_id}>${visibleLine(one.name)}, with what it may do already</option>`)}
        </select>
        ${offer.last !== null && agent === offer.last && html`<p class="small quiet" id="same-agent">You connected this application as this agent before.</p>`}
      </div>`
    }
    ${
      agent === '' &&
      html`
        <div class="field">
          <label for="${id}-name">Name</label>
          <input id="${id}-name" required maxlength="100" autocomplete="off" value=${name} onInput=${valueTo(setName)} />
        </div>
        <fieldset>
          <legend>What it is granted now</legend>
          <${Choice} name="reads" ...${{ choice, choose }}>Read on ${platforms}<//>
          <${Choice} name="all" ...${{ choice, choose }}>Read and change on ${platforms}<//>
          <${Choice} name="nothing" ...${{ choice, choose }}>Nothing yet: it asks, and you decide in the console<//>
          ${offer.alike.map((one) => html`<${Choice} name="like ${one.agent_id}" ...${{ choice, choose }}>The scopes of <span class="theirs">${visibleLine(one.name)}</span><//>`)}
          ${offer.platforms.length > 0 && html`<${Choice} name=${SINGLE} ...${{ choice, choose }}>Single scopes that I choose<//>`}
        </fieldset>
        ${
          choice === SINGLE
            ? html`<${Single} platforms=${offer.platforms} ...${{ picked, setPicked }} />`
            : html`<p class="small given" id="given" aria-live="polite">
                ${
                  grants.length === 0
                    ? 'It gets no scopes.'
                    : grants.map(
                        (one) =>
                          html`${grants.length > 1 && html`<strong class="theirs">${nameOf(offer, one.platformId)}</strong>`}${one.scopes.map((scope) => html`<code class="theirs">${visibleLine(scope)}</code>`)}`,
                      )
                }
              </p>`
        }
        ${
          offer.policies.length === 0
            ? html`<p class="notice" data-kind="wait">You have no policy yet, and without one nothing is allowed. Give it one in the console.</p>`
            : html`<div class="field">
                <label for="${id}-policy">Policy</label>
                <select id="${id}-policy" value=${policy} onChange=${valueTo(setPolicy)}>
                  ${offer.policies.map((one) => html`<option value=${one.id}>${visibleLine(one.name)}</option>`)}
                </select>
              </div>`
        }
      `
    }
  `;
}

/** The maximum number of names shown in one line. */
const MAX_NAMES = 3;

const listOf = (/** @type {string[]} */ names) =>
  names.length > MAX_NAMES
    ? `${names.slice(0, MAX_NAMES).join(', ')} and ${names.length - MAX_NAMES} more`
    : new Intl.ListFormat('en').format(names);

const nameOf = (/** @type {ConsentOffer} */ offer, /** @type {string} */ id) =>
  visibleLine(offer.platforms.find(({ platform }) => platform === id)?.name ?? id);

/** @param {Pick<TermsProps, 'choice' | 'choose'> & { name: string, children: Children }} props */
const Choice = ({ name, choice, choose, children }) => html`
  <label class="choice">
    <input type="radio" name="access" value=${name} checked=${choice === name} onChange=${() => choose(name)} />
    <span>${children}</span>
  </label>
`;

/**
 * Every scope that can be granted, by platform; `picked`: the granted ones.
 *
 * @param {Pick<TermsProps, 'picked' | 'setPicked'> & { platforms: OfferedPlatform[] }} props
 */
function Single({ platforms, picked, setPicked }) {
  const scopesOn = (/** @type {string} */ platform) =>
    picked.find(({ platformId }) => platformId === platform)?.scopes ?? [];
  const change = (/** @type {OfferedPlatform} */ platform, /** @type {string} */ scope, /** @type {boolean} */ is) => {
    const scopes = platform.all.filter((one) => (one === scope ? is : scopesOn(platform.platform).includes(one)));
    const others = picked.filter(({ platformId }) => platformId !== platform.platform);
    setPicked(scopes.length > 0 ? [...others, { platformId: platform.platform, scopes }] : others);
  };
  const count = picked.reduce((sum, { scopes }) => sum + scopes.length, 0);
  return html`
    <div class="single" id="single">
      ${platforms.map(
        (platform) => html`<fieldset key=${platform.platform}>
          <legend class="small">On <span class="theirs">${visibleLine(platform.name)}</span>${!platform.connected && ', which is not connected yet'}</legend>
          ${platform.all.map(
            (scope) => html`<label class="choice small" key=${scope}>
              <input type="checkbox" checked=${scopesOn(platform.platform).includes(scope)} onChange=${checkedTo((checked) => change(platform, scope, checked))} />
              <code class="theirs">${visibleLine(scope)}</code>
            </label>`,
          )}
        </fieldset>`,
      )}
    </div>
    <p class="small quiet" id="count" role="status">${count === 0 ? 'It gets no scopes.' : count === 1 ? 'It gets 1 scope.' : `It gets ${count} scopes.`}</p>
  `;
}
