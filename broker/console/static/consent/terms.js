// As which agent a client is let in: one that there is, or a new one, and what that may do.
import { html, useId } from '/console/html.js';
import { visibleLine } from '/console/visible.js';

/** As many as the broker takes at once. */
const MOST_PLATFORMS = 20;
const MOST_SCOPES = 100;

/** The choice of single scopes. */
export const SINGLE = 'single';

const PRESETS = {
  reads: ({ platforms }) => chosen(platforms, (one) => one.reads),
  all: ({ platforms }) => chosen(platforms, (one) => one.all),
  nothing: () => [],
};

const chosen = (platforms, scopesOf) =>
  platforms
    .filter(({ connected }) => connected)
    .map((one) => ({ platformId: one.platform, scopes: scopesOf(one).slice(0, MOST_SCOPES) }))
    .filter(({ scopes }) => scopes.length > 0)
    .slice(0, MOST_PLATFORMS);

/** What a choice that is not single scopes grants. */
export const grantsOf = (offer, choice) =>
  offer.alike.find((one) => `like ${one.agent_id}` === choice)?.grants ?? PRESETS[choice](offer);

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
  return html`
    ${
      offer.known.length > 0 &&
      html`<div class="field">
        <label for="${id}-agent">As which agent</label>
        <select id="${id}-agent" value=${agent} onChange=${({ target }) => setAgent(target.value)}>
          <option value="">A new one</option>
          ${offer.known.map((one) => html`<option value=${one.agent_id}>${visibleLine(one.name)}, with what it may do already</option>`)}
        </select>
      </div>`
    }
    ${
      agent === '' &&
      html`
        <div class="field">
          <label for="${id}-name">What to call it</label>
          <input id="${id}-name" required maxlength="100" autocomplete="off" value=${name} onInput=${({ target }) => setName(target.value)} />
        </div>
        <fieldset>
          <legend>What it may do</legend>
          <${Choice} name="reads" ...${{ choice, choose }}>Read what is connected<//>
          <${Choice} name="all" ...${{ choice, choose }}>Read and change what is connected<//>
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
                    : grants.flatMap((one) =>
                        one.scopes.map((scope) => html`<code class="theirs">${visibleLine(scope)}</code>`),
                      )
                }
              </p>`
        }
        ${
          offer.policies.length === 0
            ? html`<p class="notice" data-kind="wait">You have no policy yet, and without one nothing is allowed. Give it one in the console.</p>`
            : html`<div class="field">
                <label for="${id}-policy">Under which policy</label>
                <select id="${id}-policy" value=${policy} onChange=${({ target }) => setPolicy(target.value)}>
                  ${offer.policies.map((one) => html`<option value=${one.id}>${visibleLine(one.name)}</option>`)}
                </select>
              </div>`
        }
      `
    }
  `;
}

const Choice = ({ name, choice, choose, children }) => html`
  <label class="choice">
    <input type="radio" name="access" value=${name} checked=${choice === name} onChange=${() => choose(name)} />
    <span>${children}</span>
  </label>
`;

/** Every scope that can be granted, by platform; `picked` are grants. */
function Single({ platforms, picked, setPicked }) {
  const scopesOn = (platform) => picked.find(({ platformId }) => platformId === platform)?.scopes ?? [];
  const change = (platform, scope, is) => {
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
              <input type="checkbox" checked=${scopesOn(platform.platform).includes(scope)} onChange=${({ target }) => change(platform, scope, target.checked)} />
              <code class="theirs">${visibleLine(scope)}</code>
            </label>`,
          )}
        </fieldset>`,
      )}
    </div>
    <p class="small quiet" id="count" role="status">${count === 0 ? 'It gets no scopes.' : count === 1 ? 'It gets 1 scope.' : `It gets ${count} scopes.`}</p>
  `;
}
