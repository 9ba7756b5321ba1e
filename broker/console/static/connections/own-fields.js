// The fields of an API or an MCP server that is not built in: address, authentication, and the scopes that agents can be granted.
/** @typedef {import('/console/connections/own-entry.js').AuthType} AuthType */
/** @typedef {import('/console/connections/own-entry.js').Kind} Kind */
/** @typedef {import('/console/connections/own-entry.js').Own} Own */
import { Field } from '/console/connections/credential.js';
import { readOpenApi } from '/console/connections/openapi.js';
import { AUTHS } from '/console/connections/own-entry.js';
import { html, useId, useState } from '/console/html.js';
import { Id } from '/console/shell/copy.js';
import { useOwner } from '/console/shell/owner.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { textOf } from '/console/utf8.js';

/** @typedef {{ kind: Kind, own: Own, change: (to: Partial<Own>) => void }} Props */

/** @param {Props} props */
export function Place({ kind, own: { id, name, address }, change }) {
  return html`
    <${Field} name="address" open words="Its address" hint=${kind === 'mcp' ? 'The whole address of its Streamable HTTP endpoint, such as https://mcp.example/mcp' : 'The part before every path, such as https://crm.example/api'} value=${address} hear=${(/** @type {string} */ value) => change({ address: value })} />
    <${Field} name="name" open optional words="Its name, for people" value=${name} hear=${(/** @type {string} */ value) => change({ name: value })} />
    <${Field} name="id" open words="The id by which agents name it" hint="Small letters, digits and hyphens" value=${id} hear=${(/** @type {string} */ value) => change({ id: value })} />
  `;
}

/** @param {Props} props */
export function Auth({ kind, own, change }) {
  const field = useId();
  const hear = (/** @type {keyof Own} */ member) => (/** @type {string} */ value) => change({ [member]: value });
  const { auth, header, prefix, parameter, issuer, client_id, client_secret, consent } = own;
  return html`
    <div class="field"><label for=${field}>How the credential is sent</label>
      <select id=${field} data-field="auth" onChange=${(/** @type {{ currentTarget: HTMLSelectElement }} */ { currentTarget }) => change({ auth: /** @type {AuthType} */ (currentTarget.value) })}>
        ${Object.entries(AUTHS).map(([value, words]) => html`<option key=${value} value=${value} selected=${value === auth}>${words}</option>`)}
      </select></div>
    ${auth === 'header' && html`<${Field} name="header" open words="The header" value=${header} hear=${hear('header')} /><${Field} name="prefix" open optional words="What precedes the key in it" value=${prefix} hear=${hear('prefix')} />`}
    ${auth === 'query' && html`<${Field} name="parameter" open words="The parameter" value=${parameter} hear=${hear('parameter')} />`}
    ${
      auth === 'oauth2' &&
      html`<${Redirect} kind=${kind} />
        <${Field} name="issuer" open optional=${kind === 'mcp'} words="The issuer of its authorization server" hint="Such as https://id.crm.example" value=${issuer} hear=${hear('issuer')} />
        <${Field} name="client_id" open optional=${kind === 'mcp'} words="Client id" value=${client_id} hear=${hear('client_id')} />
        <${Field} name="client_secret" optional words="Client secret" value=${client_secret} hear=${hear('client_secret')} />
        <${Field} name="consent" open optional words="Scopes to ask consent for" hint="Scopes of the platform, separated by spaces" value=${consent} hear=${hear('consent')} />`
    }
  `;
}

/** @param {{ kind: Kind }} props */
function Redirect({ kind }) {
  const { redirect_uri: redirect } = useOwner();
  if (kind === 'mcp')
    return html`<p>Most servers need none of this: the broker asks which authorization server they trust, and registers itself there. For a client that you registered yourself, name the issuer as well; its redirect URI is <${Id} id=${redirect} what="the redirect URI" /></p>`;
  return html`<p>Register the broker there as a web application with this redirect URI: <${Id} id=${redirect} what="the redirect URI" /></p>`;
}

/** @param {Props} props */
export function Scopes({ kind, own: { scopes, more }, change }) {
  const field = useId();
  const hear =
    (/** @type {keyof Own} */ member) =>
    (/** @type {{ currentTarget: HTMLTextAreaElement }} */ { currentTarget }) =>
      change({ [member]: currentTarget.value });
  const example =
    kind === 'mcp' ? 'search\n  tool search_*\n  tool get_*' : 'contacts.read\n  GET /contacts\n  GET /contacts/*';
  return html`
    <div class="field"><label for="${field}-scopes">Scopes, and what each allows</label>
      <textarea id="${field}-scopes" data-field="scopes" class="mono" rows="10" required spellcheck=${false} autocapitalize="off" placeholder=${example} aria-describedby="${field}-scopes-hint" value=${scopes} onInput=${hear('scopes')}></textarea>
      <p class="hint" id="${field}-scopes-hint">A scope on a line of its own; below it, one a line, ${kind === 'mcp' ? html`tools by name: <code>tool search_*</code>.` : html`methods and paths: <code>GET /contacts/*</code>, where <code>*</code> is one part of a path and <code>**</code> any rest.`}
        What is in no scope cannot be called.</p></div>
    <details class="elsewhere"><summary>Further settings of the platform</summary>
      <div class="field"><label for="${field}-more">In YAML, as in a governance file <span class="quiet">(optional)</span></label>
        <textarea id="${field}-more" data-field="more" class="mono" rows="5" spellcheck=${false} autocapitalize="off" aria-describedby="${field}-more-hint" value=${more} onInput=${hear('more')}></textarea>
        <p class="hint" id="${field}-more-hint">Such as <code>headers</code>, <code>recipients</code>, <code>graphql</code> or <code>refs</code>: <a href="/docs/platforms" target="_blank" rel="noreferrer">all of them</a>.</p></div></details>
  `;
}

/** Fills the form from an OpenAPI document, which is not uploaded. @param {Pick<Props, 'change'>} props */
export function FromOpenApi({ change }) {
  const field = useId();
  const [found, setFound] = useState(0);
  const { problem, run } = useDoing();
  const read = (/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget }) =>
    run(async () => {
      setFound(0);
      const file = currentTarget.files?.[0];
      const { operations, ...to } = await readOpenApi(file ? await textOf(file) : '');
      change(to);
      setFound(operations);
    });
  return html`<div class="field">
    <label for=${field}>Its OpenAPI document <span class="quiet">(optional)</span></label>
    <input id=${field} data-field="openapi" type="file" accept=".json,.yaml,.yml,application/json,application/yaml" aria-describedby="${field}-hint" onChange=${read} />
    <p class="hint" id="${field}-hint">Fills in the fields below, with separate scopes for reading, changing and deleting, by the document's tags. Review them.</p>
    <${Problem} problem=${problem} />
    ${found > 0 && html`<p role="status" id="found">${found} operations were read.</p>`}
  </div>`;
}
