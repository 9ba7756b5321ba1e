// The confirmation before an access request or a registration is approved by key press: the key may have been meant for another window.
/** @typedef {import('../../answers.ts').ScopesOn} ScopesOn */
/** @typedef {import('/console/inbox/entries.js').AccessEntry} AccessEntry */
/** @typedef {import('/console/inbox/entries.js').RegistrationEntry} RegistrationEntry */
import { html } from '/console/html.js';
import { namesOf, oneLine } from '/console/inbox/entry-text.js';
import { Dialog } from '/console/shell/dialog.js';
import { visibleLine } from '/console/visible.js';

const ABOUT = {
  access: { title: 'Approve this request?', what: 'The agent may use it from its next call on.' },
  registration: {
    title: 'Approve this agent?',
    what: 'It becomes an agent immediately, and can collect its key within an hour.',
  },
};

/**
 * `scopes`: the scopes to grant, of an access request or a registration.
 *
 * @param {{ entry: AccessEntry | RegistrationEntry, scopes: string[] | ScopesOn | undefined, onApprove: () => void, onClose: () => void }} props
 */
export function Confirm({ entry, scopes, onApprove, onClose }) {
  const { title, what } = ABOUT[entry.kind];
  return html`
    <${Dialog} title=${title} onClose=${onClose} onSubmit=${onApprove}>
      <p class="theirs mono small">${oneLine(entry)}</p>
      ${
        scopes &&
        html`<p class="small theirs granting">It gets ${
          scopes.length > 0
            ? namesOf(scopes).map((name) => html`<code>${visibleLine(name)}</code> `)
            : 'no scopes: it may call nothing yet.'
        }</p>`
      }
      <p class="quiet small">${what}</p>
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" id="approve" autofocus>Approve</button>
      </div>
    <//>
  `;
}
