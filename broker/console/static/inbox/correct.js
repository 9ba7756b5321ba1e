// Edits a held call before it is decided: the approval is for the edited request.
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
import { asError, ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { mayDecide, useOwner } from '/console/shell/owner.js';
import { useGone } from '/console/shell/use-doing.js';
import { visible } from '/console/visible.js';

/** Renders nothing when the call cannot be edited. `done()` is called when the request was replaced. @param {{ held: HeldCall, done: () => void }} props */
export function Correct({ held, done }) {
  const owner = useOwner();
  const [asking, setAsking] = useState(false);
  if (!held.correctable || !held.request || !mayDecide(owner)) return null;
  const close = () => setAsking(false);
  const corrected = () => {
    close();
    done();
  };
  return html`
    <p class="correct"><button type="button" class="compact" onClick=${() => setAsking(true)}>Correct…</button></p>
    ${asking && html`<${CorrectDialog} id=${held.approval_id} hash=${held.request_hash} request=${held.request} onClose=${close} onCorrected=${corrected} />`}
  `;
}

/** Throws when a text is not a JSON object. @param {string} text */
function expectObject(text) {
  const value = JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('The body is an object: {"name": "value"}.');
}

/** @param {{ id: string, hash: string, request: NonNullable<HeldCall['request']>, onClose: () => void, onCorrected: () => void }} props */
function CorrectDialog({ id, hash, request, onClose, onCorrected }) {
  const written = request.body === null ? '' : JSON.stringify(request.body, undefined, 2);
  const [endpoint, setEndpoint] = useState(request.endpoint);
  const [body, setBody] = useState(written);
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const gone = useGone();
  const announce = useAnnounce();
  const submit = async () => {
    if (busy) return;
    setProblem('');
    setBusy(true);
    try {
      const isCorrected = body !== written;
      if (isCorrected) expectObject(body);
      await ask(
        'POST',
        /** @type {'/owner/approvals/x/correct'} */ (`/owner/approvals/${id}/correct`),
        { request_hash: hash, ...(endpoint !== request.endpoint && { endpoint }) },
        { written: isCorrected ? { data: body } : {} },
      );
      onCorrected();
    } catch (thrown) {
      const message = visible(asError(thrown).message);
      if (gone.current) announce(message, 'bad');
      else setProblem(message);
      setBusy(false);
    }
  };
  return html`
    <${Dialog} title="Correct this call" keeps onClose=${onClose} onSubmit=${submit}>
      <p class="small quiet">The call stays held, and the same rules apply as if the agent had sent it this way. The agent is informed of what was changed.</p>
      <div class="field">
        <label for="corrected-endpoint">Endpoint</label>
        <input id="corrected-endpoint" class="mono" maxlength="8192" autocomplete="off" autocapitalize="none" spellcheck=${false} value=${endpoint} onInput=${valueTo(setEndpoint)} />
      </div>
      ${
        request.method !== 'GET' &&
        html`<div class="field">
          <label for="corrected-body">Body, as JSON</label>
          <textarea id="corrected-body" class="mono" rows="12" spellcheck=${false} autocapitalize="off" aria-invalid=${problem !== '' ? true : null} value=${body} onInput=${(/** @type {{ currentTarget: HTMLTextAreaElement }} */ { currentTarget }) => setBody(currentTarget.value)} />
        </div>`
      }
      ${problem !== '' && html`<p class="wrong" role="alert">${problem}</p>`}
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" id="save-correction" aria-disabled=${busy}>${busy ? 'Correcting…' : 'Correct'}</button>
      </div>
    <//>
  `;
}
