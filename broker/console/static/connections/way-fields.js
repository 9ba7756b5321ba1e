// The fields for each connection method, with where to find their values.
/** @typedef {import('../../answers.ts').BuiltIn} BuiltIn */
/** @typedef {import('../../answers.ts').SecretPart} SecretPart */
/** @typedef {import('../../answers.ts').WholePlatform} WholePlatform */
/** @typedef {import('/console/connections/credential.js').Written} Written */
/** @typedef {import('/console/connections/ways.js').Way} Way */
import { CredentialFields, Field, FileField } from '/console/connections/credential.js';
import { html, useState } from '/console/html.js';
import { Id } from '/console/shell/copy.js';
import { useOwner } from '/console/shell/owner.js';

/** The values of a registration at the platform. @typedef {Record<'client_id' | 'client_secret' | 'app_id' | 'installation_id' | 'private_key', string>} Registered */
/**
 * @typedef {{
 *   builtIn: BuiltIn, known: WholePlatform | undefined, way: Way, parts: readonly SecretPart[] | null, written: Written,
 *   write: (written: Written) => void, registered: Registered, address: string, register: (more: Partial<Registered>) => void,
 * }} Props
 */

/** @param {Props} props */
export const WayFields = (props) => html`<${FIELDS[props.way]} ...${props} />`;

/** @param {Props} props */
const Token = ({ builtIn: { builtin, credential }, parts, written, write }) => html`
  <p>Make ${credential.what} ${/^https:/.test(credential.made) ? html`at <a href=${credential.made} target="_blank" rel="noreferrer">${credential.made}</a>` : html`with <code>${credential.made}</code> (<a href=${`/docs/platforms#${builtin}`} target="_blank" rel="noreferrer">how</a>)`},
    with only what your agents need. It is stored encrypted; no agent sees it, and it is never shown again.</p>
  <${CredentialFields} parts=${parts} what=${credential.what} written=${written} write=${write} />
`;

/** @param {Props} props */
function OAuth({
  builtIn: { name, registered: page, consent },
  known,
  registered: { client_id, client_secret },
  register,
}) {
  const { redirect_uri: redirect } = useOwner();
  if (known)
    return html`<p>The broker is registered at ${name} already. You sign in and consent there, and come back.</p>`;
  return html`
    <ol class="steps">
      <li>Register the broker at ${page ? html`<a href=${page} target="_blank" rel="noreferrer">${name}</a>` : name} as a web application with this redirect URI: <${Id} id=${redirect} what="the redirect URI" /></li>
      <li>Enter the client id and the client secret that it shows.</li>
      <li>Sign in and consent there${consent.length > 0 && html`, to ${consent.map((scope, at) => html`${at > 0 && ', '}<code class="theirs" key=${scope}>${scope}</code>`)}`}. The broker keeps the tokens fresh.</li>
    </ol>
    <${Field} name="client_id" open words="Client id" value=${client_id} hear=${(/** @type {string} */ value) => register({ client_id: value })} />
    <${Field} name="client_secret" words="Client secret" value=${client_secret} hear=${(/** @type {string} */ value) => register({ client_secret: value })} />
  `;
}

/** @param {Props} props */
function App({ builtIn: { name, app }, known, registered: { app_id, installation_id }, address, register }) {
  const [org, setOrg] = useState('');
  const number = html`<${Field} name="installation_id" open words="The number of the installation" hint="The address of the installation ends with it" value=${installation_id} hear=${(/** @type {string} */ value) => register({ installation_id: value })} />`;
  if (known) return number;
  return html`
    <${Field} name="org" open optional words="The organisation that shall own the App" hint="Empty: your own account" value=${org} hear=${setOrg} />
    <ol class="steps">
      <li>Make the App: <a href=${registrationAt(app?.register ?? '', address, org)} target="_blank" rel="noreferrer" id="make-app">a form at ${name}</a> that has these permissions chosen: ${Object.entries(app?.permissions ?? {}).map(([permission, access], at) => html`${at > 0 && ', '}<code>${permission}: ${access}</code>`)}. Take away there what no agent shall do, and press <strong>Create GitHub App</strong>.</li>
      <li>Its page then shows the <strong>App ID</strong>; below it, <strong>Generate a private key</strong> saves a file.</li>
      <li><strong>Install App</strong> there, and choose the repositories. The address of the page that you come to ends with the number of the installation.</li>
    </ol>
    <${Field} name="app_id" open words="The id of the App" value=${app_id} hear=${(/** @type {string} */ value) => register({ app_id: value })} />
    <${FileField} words="Its private key (the .pem file)" accept=".pem,.key" read=${(/** @type {string} */ text) => register({ private_key: text })} />
    ${number}
  `;
}

/** Returns the URL of the platform's form for an App, for one of its organisations. @param {string} form @param {string} address @param {string} org */
function registrationAt(form, address, org) {
  const { pathname, search } = new URL(form);
  // The API of GitHub Enterprise Cloud has a separate host.
  const origin = (URL.parse(address.trim()) ?? new URL(form)).origin.replace('//api.', '//');
  return `${origin}${org.trim() && `/organizations/${encodeURIComponent(org.trim())}`}${pathname}${search}`;
}

/** @type {Record<Way, (props: Props) => unknown>} */
const FIELDS = { token: Token, oauth: OAuth, app: App };
