// Trusted issuers of assertions about the person behind a call.
/** @typedef {import('../../answers.ts').CallerIssuer} CallerIssuer */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { valueTo } from '/console/shell/fields.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Question } from '/console/shell/question.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 30_000;

/** @param {{ may: boolean }} props */
export function Issuers({ may }) {
  const { answer, error, reload } = useLoaded('/owner/caller-issuers', INTERVAL_MS);
  const [leaving, setLeaving] = useState(/** @type {string | undefined} */ (undefined));
  const issuers = answer?.caller_issuers;
  return html`<section class="sheet" aria-labelledby="issuers-head">
    <h2 id="issuers-head">Trusted issuers</h2>
    <p class="quiet">Identity providers whose signed assertions of who a person is are accepted.</p>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!issuers && !error && html`<${Loading} />`}
    ${issuers?.length === 0 && html`<p id="no-issuers">None yet.</p>`}
    ${
      issuers &&
      issuers.length > 0 &&
      html`<ul role="list" class="rows" id="issuers">
        ${issuers.map((one) => html`<${Row} key=${one.issuer} one=${one} uri=${answer?.redirect_uris[one.issuer] ?? ''} may=${may} remove=${() => setLeaving(one.issuer)} />`)}
      </ul>`
    }
    ${may && html`<${Add} changed=${reload} />`}
    ${leaving && html`<${Remove} issuer=${leaving} onClose=${() => setLeaving(undefined)} onDone=${reload} />`}
  </section>`;
}

/** @param {{ one: CallerIssuer, uri: string, may: boolean, remove: () => void }} props */
const Row = ({ one: { issuer, audience, claim, client_id: client }, uri, may, remove }) => html`
  <li class="row" data-issuer=${issuer}>
    <div class="what">
      <p class="name"><strong class="theirs">${visibleLine(issuer)}</strong></p>
      <p class="small quiet">Audience <code class="theirs">${visibleLine(audience)}</code>${claim && html` · claim <code class="theirs">${visibleLine(claim)}</code>`}
        ${' · '}${client ? html`people sign in as <code class="theirs">${visibleLine(client)}</code>` : 'nobody can consent: it has no client_id'}</p>
      ${client && html`<p class="small quiet">Redirect URI <code class="theirs redirect">${uri}</code></p>`}
    </div>
    ${may && html`<div class="buttons"><button type="button" class="compact danger remove" onClick=${remove}>Remove…<span class="unseen"> ${visibleLine(issuer)}</span></button></div>`}
  </li>
`;

/** @param {{ changed: () => void }} props */
function Add({ changed }) {
  const [issuer, setIssuer] = useState('');
  const [audience, setAudience] = useState('');
  const [client, setClient] = useState('');
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const add = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const done = await run(async () => {
      // An issuer that is trusted already keeps the terms that this form does not have: its claim, algorithms and keys.
      const { caller_issuers: trusted } = await ask('GET', '/owner/caller-issuers');
      const known = trusted.find((one) => one.issuer === issuer);
      const terms = { ...known, issuer, audience, ...(client !== '' && { client_id: client }) };
      await ask('POST', '/owner/caller-issuers', terms);
      announce('Its assertions are accepted from now on.', 'good');
    });
    if (!done) return;
    for (const clear of [setIssuer, setAudience, setClient]) clear('');
    changed();
  };
  return html`<details class="add">
    <summary>Trust an issuer</summary>
    <form onSubmit=${add}>
      <label for="issuer">Issuer, exactly as in <code>iss</code></label>
      <input id="issuer" type="url" required placeholder="https://id.example.com" value=${issuer} onInput=${valueTo(setIssuer)} />
      <label for="audience">Audience (<code>aud</code>) of the assertions</label>
      <input id="audience" type="text" required autocomplete="off" value=${audience} onInput=${valueTo(setAudience)} />
      <label for="client">Client id of this broker there, with which people sign in to consent</label>
      <input id="client" type="text" autocomplete="off" value=${client} onInput=${valueTo(setClient)} />
      <p class="quiet small">Register it as a public client with PKCE. The list above has its redirect URI once you trust the issuer. An issuer whose metadata
        have <code>authorization_response_iss_parameter_supported</code> sends people back to <code class="theirs">${location.origin}/me/consent/signed-in</code> instead: register that one there.</p>
      <${Problem} problem=${problem} />
      <div class="buttons"><button type="submit" id="trust" disabled=${busy}>Trust</button></div>
    </form>
  </details>`;
}

/** @param {{ issuer: string, onClose: () => void, onDone: () => void }} props */
function Remove({ issuer, onClose, onDone }) {
  const remove = async () => {
    await ask('POST', '/owner/caller-issuers/remove', { issuer });
    return 'It is no longer trusted.';
  };
  return html`<${Question} title="Stop trusting this issuer?" verb="Remove" kind="danger solid" id="distrust" work=${remove} onClose=${onClose} onDone=${onDone}>
    <p>Calls for people whose identity <strong class="theirs">${visibleLine(issuer)}</strong> asserts are refused from the next one on. Their consents stay until somebody ends them.</p>
  <//>`;
}
