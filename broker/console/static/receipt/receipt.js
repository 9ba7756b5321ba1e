// The receipt page: shows a receipt and verifies it in the browser.
/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
/** @typedef {import('/console/receipt/verdict.js').Looked} Looked */
import { asError, ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { ReceiptFacts } from '/console/receipt/facts.js';
import { Limits, Verdict } from '/console/receipt/verdict.js';
import { canVerify, receiptIn, sha256Hex, verifyReceipt, withJson } from '/console/receipt/verify.js';
import { useChangers } from '/console/shell/changers.js';
import { valueTo } from '/console/shell/fields.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** @param {{ place: URL }} props */
export function ReceiptPage({ place }) {
  const id = place.searchParams.get('id') ?? '';
  const [looked, setLooked] = useState(/** @type {Looked | undefined} */ (undefined));
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isOver = false;
    setLooked(undefined);
    setError(undefined);
    if (id !== '')
      lookAt(id).then(
        (found) => !isOver && setLooked(found),
        (thrown) => !isOver && setError(asError(thrown)),
      );
    return () => {
      isOver = true;
    };
  }, [id, round]);
  const bring = async (/** @type {string} */ text) => {
    setError(undefined);
    const jws = receiptIn(text);
    if (jws === undefined)
      return setError(new Error('This is neither a receipt (three parts with dots) nor the JSON of one.'));
    const found = await checked(jws).catch((thrown) => void setError(asError(thrown)));
    setLooked(found?.checked ? { ...found, checked: withJson(text, found.checked) } : found);
  };
  const payload = looked?.checked?.payload;
  const names = useNames(payload?.agent);
  return html`
    <div class="page-head">
      <h1>Receipt</h1>
      <p class="small"><${Link} to="/console/activity">Activity<//></p>
    </div>
    <div class="receipt stack">
      ${error && html`<${Failed} error=${error} again=${() => setRound(round + 1)} />`}
      ${id !== '' && !looked && !error && html`<${Loading} />`}
      ${looked && html`<${Verdict} looked=${looked} />`}
      ${payload && html`<section class="sheet part" aria-label="What it says"><h2>${looked?.checked?.ok ? 'What it says' : 'What it claims'}</h2><${ReceiptFacts} payload=${payload} names=${names} /></section>`}
      ${looked?.checked?.ok && html`<${Limits} />`}
      ${(!id || looked || error) && html`<${OtherReceipt} bring=${bring} first=${!id && !looked} />`}
    </div>
  `;
}

/** Returns names of owners, pipelines and this agent, by id. @param {unknown} agent */
function useNames(agent) {
  const path = /** @type {const} */ (
    `/owner/agents?limit=5&q=${typeof agent === 'string' ? encodeURIComponent(agent) : ''}`
  );
  const agents = useLoaded(path, 60_000).answer?.agents ?? [];
  const changers = useChangers();
  return new Map([...changers, ...agents.map(({ agent_id, name }) => /** @type {const} */ ([agent_id, name]))]);
}

/** Reads and verifies the receipt of an audit row, and whether the row is unchanged since it was signed. @param {string} id @returns {Promise<Looked>} */
async function lookAt(id) {
  if (!UUID.test(id)) throw new Error('This is no audit id. Open a receipt from the activity, or check one below.');
  const { receipt } = await ask('GET', /** @type {const} */ (`/v1/audit/${id}/receipt`));
  const looked = await checked(receipt);
  if (!looked.checked?.ok) return looked;
  const { rows } = await ask('GET', /** @type {const} */ (`/owner/audit?limit=1&text=${id}`));
  const [row] = rows;
  return { ...looked, row: row?.id === id.toLowerCase() && (await rowHash(row)) === looked.checked.payload?.row_hash };
}

/** @param {string} jws @returns {Promise<Looked>} */
async function checked(jws) {
  if (!canVerify()) return { jws };
  const { keys } = await ask('GET', '/.well-known/svc-receipt-keys.json');
  return { jws, checked: await verifyReceipt(jws, keys) };
}

// The form to verify another receipt, pasted or from a file.
/**
 * @param {{ bring: (text: string) => void, first: boolean }} props `first`: whether nothing else is on the page
 */
function OtherReceipt({ bring, first }) {
  const [text, setText] = useState('');
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text.trim()) bring(text);
  };
  const read = async (/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget }) => {
    const file = currentTarget.files?.[0];
    if (file && file.size < 1_000_000) setText(await file.text());
  };
  return html`<form class="sheet part other" onSubmit=${submit}>
    <h2>${first ? 'Check a receipt' : 'Check another one'}</h2>
    ${first && html`<p class="quiet">Every decision and change leaves a signed receipt. Open one from the activity, or paste one that somebody sent you: it is checked in this page.</p>`}
    <div class="field">
      <label for="receipt-text">Receipt, or the JSON of one</label>
      <textarea id="receipt-text" rows="3" spellcheck="false" autocomplete="off" value=${text} onInput=${valueTo(setText)}></textarea>
    </div>
    <div class="field">
      <label for="receipt-file">or a file</label>
      <input id="receipt-file" type="file" accept=".jws,.json,.txt,application/jose,application/json" onChange=${read} />
    </div>
    <div class="buttons"><button type="submit" class="primary" id="check" disabled=${!text.trim()}>Check</button></div>
  </form>`;
}

// Computes the hash of an audit row, to check that the row is unchanged since its receipt was signed (docs/receipts.md, "The row hash").
/** The columns that the hash covers, in alphabetical order. */
const COLUMNS = /** @type {const} */ ([
  'agent_id',
  'agent_public_id',
  'agent_reason',
  'approval_id',
  'connection_id',
  'correlation_id',
  'created_at',
  'decision',
  'detail',
  'finished_at',
  'flags',
  'id',
  'kind',
  'method',
  'organisation_id',
  'path',
  'pii',
  'platform_id',
  'reason',
  'result',
  'scope',
  'session_id',
  'upstream_status',
  'violating',
]);

/**
 * Returns the hash of a row as recorded now, in hexadecimal.
 *
 * @param {AuditRow} row
 */
function rowHash(row) {
  const stored = COLUMNS.map((name) => {
    const value = row[name];
    if (value !== null && (name === 'created_at' || name === 'finished_at')) return [name, Date.parse(String(value))];
    return [name, typeof value === 'object' && value !== null ? JSON.stringify(value) : value];
  });
  return sha256Hex(JSON.stringify(Object.fromEntries(stored)));
}
