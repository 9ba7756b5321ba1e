/** @typedef {import('../../answers.ts').BuiltIn} BuiltIn */
/** @typedef {import('../../answers.ts').Platform} Platform */
/** @typedef {import('../../answers.ts').Tested} Tested */
/** @typedef {import('/console/connections/steps.js').Tried} Tried */
/** @typedef {import('../../answers.ts').WholePlatform} WholePlatform */
/** @typedef {import('/console/connections/credential.js').Written} Written */
/** @typedef {import('/console/connections/way-fields.js').Registered} Registered */
/** @typedef {import('/console/connections/ways.js').Way} Way */

import { describeTest } from '/console/connections/connection-labels.js';
import { Field, secretOf } from '/console/connections/credential.js';
import { LeaveDialog } from '/console/connections/leave-dialog.js';
import { builtInEntry, connect } from '/console/connections/steps.js';
import { WayFields } from '/console/connections/way-fields.js';
import { wayOf } from '/console/connections/ways.js';
import { html, useState } from '/console/html.js';
import { navigate } from '/console/shell/router.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const NOTHING = { client_id: '', client_secret: '', app_id: '', installation_id: '', private_key: '' };
/** @typedef {{ platform: string, connection: { id: string, label: string }, test: Tested }} Connected */

/** `known`: the platform to which another account is connected. @param {{ builtIn: BuiltIn, known: WholePlatform | undefined, platforms: readonly Platform[], connected: (one: Connected) => void }} props */
export function ConnectForm({ builtIn, known, platforms, connected }) {
  const { builtin, credential, base_url } = builtIn;
  const [way, setWay] = useState(/** @type {Way} */ (known ? wayOf(known) : 'token'));
  const [id, setId] = useState(() =>
    freeName(
      builtIn.platform_id,
      platforms.map(({ platform_id }) => platform_id),
    ),
  );
  const [address, setAddress] = useState('');
  const [label, setLabel] = useState(() =>
    freeName(
      known && known.platform_id !== builtIn.platform_id ? `${builtin}-${known.platform_id}` : builtin,
      labelsOf(platforms),
    ),
  );
  const [written, write] = useState(/** @type {Written} */ ({}));
  const [registered, register] = useState(NOTHING);
  const [refused, setRefused] = useState(/** @type {Tried | undefined} */ (undefined));
  const [leaving, setLeaving] = useState(/** @type {{ id: string, url: string } | undefined} */ (undefined));
  const { busy, problem, run } = useDoing();
  const parts = known ? known.secret_parts : credential.parts;
  const platformId = known?.platform_id ?? id.trim();
  const secret =
    way === 'token' ? secretOf(parts, written) : way === 'app' && known ? registered.installation_id : undefined;
  const { client_id, client_secret, app_id, installation_id, private_key } = registered;
  const lacks = {
    token: secret === undefined,
    oauth: !known && (!client_id.trim() || !client_secret),
    app: !installation_id.trim() || (!known && (!app_id.trim() || !private_key)),
  }[way];
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (lacks) return;
    setRefused(undefined);
    run(async () => {
      const where = {
        platform: platformId,
        ...(address.trim() && { base_url: address.trim() }),
        ...(way === 'oauth' && { client_id: client_id.trim() }),
        ...(way === 'app' && { app_id: app_id.trim(), installation_id: installation_id.trim() }),
      };
      const secrets = known ? {} : way === 'oauth' ? { client_secret } : way === 'app' ? { private_key } : {};
      const plan = {
        platformId,
        known: known !== undefined,
        entry: () => builtInEntry(builtin, where),
        secrets,
        label: label.trim(),
        secret,
        way,
      };
      const { connection, test, consentAt } = await connect(plan);
      // The page does not keep secrets that were stored.
      write({});
      if (consentAt) {
        register(NOTHING);
        setLeaving({ id: connection.id, url: consentAt });
      } else if (test?.ok) connected({ platform: platformId, connection, test });
      else setRefused(test);
    });
  };
  return html`<form id="connect-form" class="stack" onSubmit=${submit}>
    ${!known && html`<${Ways} ways=${builtIn.ways} way=${way} choose=${setWay} />`}
    ${
      !known &&
      (base_url === null
        ? html`<${Field} name="address" open words="Its address" hint=${ADDRESS[builtin] ?? 'As https://host/path'} value=${address} hear=${setAddress} />`
        : html`<details class="elsewhere"><summary>Not at ${base_url}, or under another id</summary>
            <div class="stack">
              <${Field} name="address" open optional words="Its address" hint=${ADDRESS[builtin] ?? `Leave it empty for ${base_url}`} value=${address} hear=${setAddress} />
              <${Field} name="id" open words="The id by which agents name it" hint="Small letters, digits and hyphens" value=${id} hear=${setId} />
            </div></details>`)
    }
    <${WayFields} ...${{ builtIn, known, way, parts, written, write, registered, address }} register=${(/** @type {Partial<Registered>} */ more) => register({ ...registered, ...more })} />
    <${Field} name="label" open words="What to call this connection" value=${label} hear=${setLabel} />
    <${Problem} problem=${problem} />
    ${refused && html`<${Refused} test=${refused} builtIn=${builtIn} />`}
    <div class="buttons">
      <button type="submit" class="primary" id="connect" disabled=${busy || lacks || label.trim() === '' || platformId === ''}>${busy ? 'Asking the platform…' : way === 'oauth' ? 'Continue to consent' : 'Connect and test'}</button>
    </div>
    ${leaving && html`<${LeaveDialog} connection=${{ label: label.trim(), platform: platformId }} url=${leaving.url} onClose=${() => navigate(`/console/connections?connect=${leaving.id}`)} />`}
  </form>`;
}

/** Hint of the address field, for platforms whose address differs by customer. @type {Partial<Record<BuiltIn['builtin'], string>>} */
const ADDRESS = {
  jira: 'https://your-site.atlassian.net; with OAuth https://api.atlassian.com/ex/jira/ and the cloud id',
  kubernetes: 'Of the API server, as kubectl cluster-info prints it',
  s3: 'Such as https://s3.eu-central-1.amazonaws.com, or your own store',
  github: 'Of a GitHub Enterprise, such as https://github.acme.example',
};

/** @param {{ ways: BuiltIn['ways'], way: Way, choose: (way: Way) => void }} props */
const Ways = ({ ways, way: chosen, choose }) =>
  ways.length > 1 &&
  html`<fieldset>
    <legend>How</legend>
    ${ways.map(
      ({ way, what }) => html`<label class="choice" key=${way}>
        <input type="radio" name="way" value=${way} checked=${way === chosen} onChange=${() => choose(way)} />
        <span>${what.slice(0, 1).toUpperCase() + what.slice(1)}</span>
      </label>`,
    )}
  </fieldset>`;

/** @param {{ test: Tried, builtIn: BuiltIn }} props */
const Refused = ({
  test,
  builtIn: { credential },
}) => html`<div class="notice" data-kind="bad" role="alert" id="refused">
  <div><p><strong>${describeTest(test).words}.</strong> <span class="theirs">${visibleLine(test.detail)}</span></p>
  <p class="small">${test.left ?? html`Nothing was stored. Check ${credential.what}, and paste it again.`}</p></div>
</div>`;

const labelsOf = (/** @type {readonly Platform[]} */ platforms) =>
  platforms.flatMap(({ connections }) => connections.map(({ label }) => label));

/** Returns the name, or the name with the next free number. @param {string} name @param {readonly string[]} taken */
function freeName(name, taken) {
  if (!taken.includes(name)) return name;
  for (let number = 2; ; number++) if (!taken.includes(`${name}-${number}`)) return `${name}-${number}`;
}
