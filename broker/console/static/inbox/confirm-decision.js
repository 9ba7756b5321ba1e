// The confirmation before the open entry is decided.
/** @typedef {ReturnType<typeof import('/console/inbox/use-deciding.js').useDeciding>} Deciding */
/** @typedef {import('/console/inbox/entries.js').RegistrationEntry} RegistrationEntry */
/** @typedef {import('/console/inbox/entries.js').AccessEntry} AccessEntry */
/** @typedef {import('../../answers.ts').ScopesOn} ScopesOn */
/** @typedef {import('/console/inbox/entries.js').Act} Act */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('../../answers.ts').StandingBody} StandingBody */
import { html, useState } from '/console/html.js';
import { namesOf, oneLine } from '/console/inbox/entry-text.js';
import { ConfirmCall } from '/console/request-view/confirm-call.js';
import { ReasonFields, useReason } from '/console/request-view/reason.js';
import { Dialog } from '/console/shell/dialog.js';
import { checkedTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

/**
 * `others`: the result of othersOf. `approve(note)`, `deny(note, all)`: the note is empty when none was written.
 *
 * @param {{
 *   what: Exclude<Act, 'passkey'>, entry: Entry, deciding: Deciding, others: number,
 *   approve: (note: string, standing?: StandingBody) => void, deny: (note?: string, all?: boolean) => void, onClose: () => void,
 * }} props
 */
export function ConfirmDecision({ what, entry, deciding, others, approve, deny, onClose }) {
  if (entry.kind === 'approval') {
    const held = deciding.held();
    const onYes = (
      /** @type {string} */ note,
      /** @type {boolean} */ all,
      /** @type {StandingBody | undefined} */ standing,
    ) => (what === 'approve' ? approve(note, standing) : deny(note, all));
    return (
      held &&
      html`<${ConfirmCall} what=${what === 'approve' ? 'approve' : 'deny'} byPasskey=${what === 'deny-passkey'} held=${held} others=${others} written=${deciding.unsent(entry.key)} terms=${deciding.unsentTerms(entry.key)} onYes=${onYes} onClose=${onClose} />`
    );
  }
  if (what === 'approve')
    return html`<${Confirm} entry=${entry} scopes=${deciding.scopes()} onApprove=${() => approve('')} onClose=${onClose} />`;
  return entry.kind === 'access'
    ? html`<${Deny} entry=${entry} written=${deciding.unsent(entry.key)} onDeny=${deny} onClose=${onClose} />`
    : html`<${Reject} entry=${entry} others=${others} onDeny=${deny} onClose=${onClose} />`;
}

// The confirmation before an access request or a registration is approved by key press: the key may have been meant for another window.
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
function Confirm({ entry, scopes, onApprove, onClose }) {
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

// The dialog that denies an access request, with a reason that the agent can act on.
/**
 * `onDeny(note)`: the note is empty without a reason. `written`: the words to begin with.
 *
 * @param {{ entry: AccessEntry, written: string | undefined, onDeny: (note: string) => void, onClose: () => void }} props
 */
function Deny({ entry, written, onDeny, onClose }) {
  const reason = useReason(written);
  return html`
    <${Dialog} title="Deny this request?" onClose=${onClose} onSubmit=${() => onDeny(reason.note)}>
      <p class="theirs mono small">${oneLine(entry)}</p>
      <${ReasonFields} reason=${reason} whom=${html`<span class="theirs">${visibleLine(entry.item.agent.name)}</span>`} kind="access" />
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="danger solid" id="deny">Deny</button>
      </div>
    <//>
  `;
}

// The dialog that rejects a registration.
/**
 * As Deny, without a reason: no agent exists yet that would read it. `others`: how many more registrations wait from the same network.
 *
 * @param {{
 *   entry: RegistrationEntry, others: number, onDeny: (note: string | undefined, all: boolean) => void, onClose: () => void,
 * }} props
 */
function Reject({ entry, others, onDeny, onClose }) {
  const [all, setAll] = useState(false);
  return html`
    <${Dialog} title="Reject this agent?" onClose=${onClose} onSubmit=${() => onDeny(undefined, all)}>
      <p class="theirs mono small">${oneLine(entry)}</p>
      ${
        others > 0 &&
        html`<label class="check">
          <input type="checkbox" id="deny-all" checked=${all} onChange=${checkedTo(setAll)} />
          Also reject the other ${others === 1 ? 'one' : others} from <code class="theirs">${visibleLine(entry.item.network)}</code> that ${others === 1 ? 'waits' : 'wait'}
        </label>`
      }
      <p class="quiet small">It never gets a key. It learns that it was rejected, and may register again; after ten rejections only a day later.</p>
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="danger solid" id="deny" autofocus>${all ? `Reject all ${others + 1}` : 'Reject'}</button>
      </div>
    <//>
  `;
}
