// The public page that verifies an export of a receipt log. The chosen files never leave the browser.
import { byId, html, render, useState } from '/console/html.js';
import { canVerify } from '../receipt/verify.js';
import { textOf } from '../utf8.js';
import { linesOf } from './export-lines.js';
import { verifyLogExport } from './log-export.js';
import { readVerifierKeys } from './note.js';
import { remarksOf } from './remarks.js';

/** @typedef {import('./log-export.js').LogVerdict} LogVerdict */

/** @param {HTMLFormElement} form @param {string} name @returns {File[]} those that were chosen */
const filesIn = (form, name) =>
  new FormData(form).getAll(name).flatMap((one) => (one instanceof File && one.size > 0 ? [one] : []));

/** @param {HTMLFormElement} form */
async function verifyForm(form) {
  const [log] = filesIn(form, 'log');
  const [key] = filesIn(form, 'key');
  const [receiptKeys] = filesIn(form, 'receipt-keys');
  if (!log || !key) throw new Error('Choose the export and the verifier keys.');
  const keys = await readVerifierKeys(await textOf(key));
  const checkpoints = await Promise.all(
    filesIn(form, 'checkpoint').map(async (kept) => ({ name: kept.name, note: await textOf(kept) })),
  );
  const set = receiptKeys && JSON.parse(await textOf(receiptKeys)).keys;
  if (receiptKeys && !Array.isArray(set)) throw new Error(`${receiptKeys.name} is no key set.`);
  const lines = linesOf(log.stream().pipeThrough(new TextDecoderStream()));
  return await verifyLogExport(lines, { keys, checkpoints, ...(set && { receiptKeys: set }) });
}

function Verify() {
  const [state, setState] = useState(
    /** @type {{ kind: 'asking' | 'busy' } | { kind: 'failed', why: string } | { kind: 'done', verdict: LogVerdict }} */ ({
      kind: 'asking',
    }),
  );
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    setState({ kind: 'busy' });
    verifyForm(/** @type {HTMLFormElement} */ (event.currentTarget)).then(
      (verdict) => setState({ kind: 'done', verdict }),
      (error) => setState({ kind: 'failed', why: error instanceof Error ? error.message : String(error) }),
    );
  };
  if (!canVerify())
    return html`<div class="sheet"><h1>Verify a receipt log</h1>
      <p class="notice" data-kind="bad">Browsers support cryptography only on https and on localhost: open this page there, or use <code>agent-broker verify export</code>.</p></div>`;
  return html`<div class="sheet">
    <h1>Verify a receipt log</h1>
    <p>Shows which rows of an export were changed, removed, inserted or moved since they were logged. The files stay in this browser; the page needs no sign-in and makes no request to the broker.</p>
    <form id="verify-log" onSubmit=${submit}>
      <${Choice} name="log" title="Export" hint="from GET /owner/log/export" required />
      <${Choice} name="key" title="Verifier keys" hint="saved from /.well-known/svc-log/… when you trusted the broker" required />
      <${Choice} name="checkpoint" title="Checkpoints that you kept" hint="the log has to continue from each of them; without any, it is not detected if somebody with its key rewrote the log" multiple />
      <${Choice} name="receipt-keys" title="Key set of receipts" hint="from /.well-known/svc-receipt-keys.json: the signatures of receipts are checked, too; needed where rows were deleted after their retention time" />
      <div class="buttons"><button type="submit" class="primary" disabled=${state.kind === 'busy'}>${state.kind === 'busy' ? 'Verifying…' : 'Verify'}</button></div>
    </form>
    <div role="status" id="verdict">
      ${state.kind === 'failed' && html`<p class="notice" data-kind="bad">${state.why}</p>`}
      ${state.kind === 'done' && html`<${Verdict} verdict=${state.verdict} />`}
    </div>
  </div>`;
}

/** @param {{ name: string, title: string, hint: string, required?: boolean, multiple?: boolean }} props */
const Choice = ({ name, title, hint, required = false, multiple = false }) => html`<div class="field">
  <label for=${`file-${name}`}>${title} ${!required && html`<span class="quiet">(optional)</span>`}</label>
  <input type="file" id=${`file-${name}`} name=${name} required=${required} multiple=${multiple} aria-describedby=${`hint-${name}`} />
  <p class="hint" id=${`hint-${name}`}>${hint}</p>
</div>`;

/** @param {{ verdict: LogVerdict }} props */
function Verdict({ verdict }) {
  const { ok, origin, size, rows, problems, more } = verdict;
  if (ok)
    return html`<div class="notice" data-kind="good"><p><strong>Nothing was changed, removed, inserted or moved.</strong>
      ${` ${rows} rows are in the log ${origin} of ${size} rows. ${remarksOf(verdict).join(' ')}`}</p></div>`;
  return html`<p class="notice" data-kind="bad"><strong>The export does not verify.</strong></p>
    <ul id="problems">${problems.map(({ kind, detail }) => html`<li data-kind=${kind}>${detail}</li>`)}</ul>
    ${more > 0 && html`<p>and ${more} more</p>`}`;
}

render(html`<${Verify} />`, byId('page'));
