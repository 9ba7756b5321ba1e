// The result of verifying a receipt, its key, and what the signature proves and does not prove.
/** @typedef {import('/console/receipt/verify.js').Checked} Checked */
import { html } from '/console/html.js';
import { Copy } from '/console/shell/copy.js';
import { formatDuration } from '/console/shell/duration.js';
import { useLoaded } from '/console/shell/loaded.js';
import { exactly } from '/console/shell/time.js';

/** `row`: whether the audit row is unchanged since it was signed; undefined: not checked. @typedef {{ jws: string, checked?: Checked, row?: boolean }} Looked */

/** @param {{ looked: Looked }} props */
export function Verdict({ looked: { jws, checked, row } }) {
  return html`<section class="sheet part" id="verdict" data-valid=${checked ? String(checked.ok) : 'unknown'} aria-label="Signature">
    ${saidOf(checked)}
    ${row === true && html`<p class="small" id="row-unchanged">The row on record is unchanged: its hash is the one that was signed.</p>`}
    ${row === false && html`<p class="notice" data-kind="bad" id="row-changed">The row on record is not the one that was signed: it was changed after that.</p>`}
    ${checked?.kid && html`<${Key} kid=${checked.kid} />`}
    <${Take} jws=${jws} id=${typeof checked?.payload?.jti === 'string' ? checked.payload.jti : 'receipt'} />
  </section>`;
}

/** @param {Looked['checked']} checked */
function saidOf(checked) {
  if (!checked)
    return html`<p class="notice" data-kind="wait" role="status">Not checked: browsers support cryptography only on https and on localhost. Download it, and check it with
      <code>agent-broker verify receipt --keys keys.json receipt.jws</code>.</p>`;
  return checked.ok
    ? html`<p class="notice" data-kind="good" role="status"><span><strong>Signature valid.</strong> Checked in this page against the keys that this broker publishes.</span></p>`
    : html`<p class="notice" data-kind="bad" role="alert"><span><strong>Invalid.</strong> It does not verify: ${checked.error}. Do not rely on anything in it.</span></p>`;
}

/** @param {{ kid: string }} props */
function Key({ kid }) {
  const { answer } = useLoaded('/owner/keys', 600_000);
  const key = answer?.keys.find((one) => one.kid === kid);
  const from = key && Date.parse(key.signs_from);
  return html`<p class="small" id="key">Key <code>${kid}</code>${
    key && from !== undefined
      ? html`<span class="quiet">, which has signed since ${exactly(key.signs_from)} (${formatDuration(Date.now() - from)} old)${
          key.retired_at ? `, until ${exactly(key.retired_at)}: it is retired, and still published` : ''
        }</span>`
      : ''
  }</p>`;
}

/** @param {{ jws: string, id: string }} props */
function Take({ jws, id }) {
  const download = () => {
    const address = URL.createObjectURL(new Blob([jws], { type: 'application/jose' }));
    const link = document.createElement('a');
    link.href = address;
    link.download = `receipt-${id.replaceAll(/[^\w-]/g, '')}.jws`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  return html`<div class="buttons">
    <button type="button" class="compact" id="download" onClick=${download}>Download</button>
    <${Copy} text=${jws} what="the receipt" />
  </div>
  <details class="raw small"><summary>The receipt as it was signed</summary><pre>${jws}</pre></details>`;
}

/** What a signature does not prove. */
export const Limits = () => html`<section class="sheet part small" id="limits" aria-label="What it does not prove">
  <h2>What it does not prove</h2>
  <ul>
    <li>That no other row is missing. A receipt covers only its own row.</li>
    <li>What was in the body, the query or the answer: a receipt holds none of them, only hashes of the request that was approved.</li>
    <li>That the platform did what it answered, or that an agent's words are true.</li>
    <li>Independence of this broker: the page and the keys came from it. For that, save the key set once from a place that you trust, and
    check with <code>agent-broker verify receipt</code>, which needs no network.</li>
  </ul>
</section>`;
