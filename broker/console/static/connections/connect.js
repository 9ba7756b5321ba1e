// The page that connects one platform: method, address and credential, then the result of the test.
/** @typedef {import('../../answers.ts').BuiltIn} BuiltIn */
/** @typedef {import('../../answers.ts').Platform} Platform */
import { ConnectForm } from '/console/connections/connect-form.js';
import { Done } from '/console/connections/done.js';
import { html, useState } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { visibleLine } from '/console/visible.js';

/** @typedef {import('/console/connections/connect-form.js').Connected} Connected */

/** @param {{ builtIn: BuiltIn, platforms: readonly Platform[], changed: () => void }} props */
export function Connect({ builtIn, platforms, changed }) {
  const may = mayChange(useOwner());
  const alike = platforms.filter(({ builtin }) => builtin === builtIn.builtin);
  const [known, setKnown] = useState(alike[0]?.platform_id ?? '');
  const [done, setDone] = useState(/** @type {Connected | undefined} */ (undefined));
  const connected = (/** @type {Connected} */ one) => {
    setDone(one);
    changed();
    scrollTo(0, 0);
  };
  if (done) return html`<${Done} ...${done} another=${() => setDone(undefined)} />`;
  const common = { builtIn, platforms, connected };
  return html`
    ${
      may &&
      html`<div class="sheet connect stack">
        ${
          alike.length > 0 &&
          html`<div class="field">
            <label for="which">${builtIn.name} is set up already</label>
            <select id="which" onChange=${valueTo(setKnown)}>
              ${alike.map(({ platform_id, name }) => html`<option key=${platform_id} value=${platform_id} selected=${known === platform_id}>Another account on ${visibleLine(name)} (${visibleLine(platform_id)})</option>`)}
              <option value="" selected=${known === ''}>A new platform, separate from it</option>
            </select>
          </div>`
        }
        ${known ? html`<${OnKnown} key=${known} id=${known} ...${common} />` : html`<${ConnectForm} key="new" known=${undefined} ...${common} />`}
      </div>`
    }
    <${Grantable} builtIn=${builtIn} />
  `;
}

/** @param {{ id: string, builtIn: BuiltIn, platforms: readonly Platform[], connected: (one: Connected) => void }} props */
function OnKnown({ id, ...common }) {
  const { answer, error, reload } = useLoaded(/** @type {const} */ (`/owner/platforms/${id}`), 600_000);
  if (!answer) return error ? html`<${Failed} error=${error} again=${reload} />` : html`<${Loading} />`;
  return html`<${ConnectForm} known=${answer} ...${common} />`;
}

/** What agents can be granted after connecting, and that connecting alone grants nothing. @param {{ builtIn: BuiltIn }} props */
const Grantable = ({ builtIn: { name, presets, docs } }) => html`
  <section class="sheet grantable stack" aria-labelledby="grantable">
    <h2 id="grantable">What agents can be granted on it</h2>
    <p class="quiet">Connecting ${name} gives no agent access: each agent is granted scopes separately, and your policy still decides on every call. These
      sets of scopes are predefined; single scopes can be chosen, too:</p>
    <dl class="facts">
      ${presets.map(
        ({ name: preset, scopes }) => html`<dt><strong>${preset}</strong></dt>
        <dd class="small">${
          scopes.length > MAX
            ? html`<details><summary>${scopes.length} scopes</summary><${Scopes} scopes=${scopes} /></details>`
            : html`<${Scopes} scopes=${scopes} />`
        }</dd>`,
      )}
    </dl>
    ${docs && html`<p class="small"><a href=${docs} target="_blank" rel="noreferrer">The API of ${name}</a></p>`}
  </section>
`;
const MAX = 4;

/** @param {{ scopes: readonly string[] }} props */
const Scopes = ({ scopes }) =>
  scopes.map((scope, at) => html`${at > 0 && ', '}<code class="theirs" key=${scope}>${scope}</code>`);
