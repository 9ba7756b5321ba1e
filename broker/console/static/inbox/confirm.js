// The second step of approving by key: the first may have been meant for another window.
import { html } from '/console/html.js';
import { oneLine } from '/console/inbox/words.js';
import { Dialog } from '/console/shell/dialog.js';
import { visibleLine } from '/console/visible.js';

const ABOUT = {
  approval: { title: 'Approve this call?', what: 'It is made at once, exactly as you see it, and at most once.' },
  access: { title: 'Approve this request?', what: 'The agent may use it from its next call on.' },
};

/** `scopes`: what is granted, of an access request. */
export function Confirm({ entry, scopes, onApprove, onClose }) {
  const { title, what } = ABOUT[entry.kind];
  return html`
    <${Dialog} title=${title} onClose=${onClose} onSubmit=${onApprove}>
      <p class="theirs mono small">${oneLine(entry)}</p>
      ${scopes && html`<p class="small theirs">It gets ${scopes.map((scope) => html`<code>${visibleLine(scope)}</code> `)}</p>`}
      <p class="quiet small">${what}</p>
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" id="approve" autofocus>Approve</button>
      </div>
    <//>
  `;
}
