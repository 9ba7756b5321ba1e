// The confirmation before the open entry is decided.
/** @typedef {import('/console/inbox/entries.js').Act} Act */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {import('../../answers.ts').StandingBody} StandingBody */
/** @typedef {ReturnType<typeof import('/console/inbox/use-deciding.js').useDeciding>} Deciding */
import { html } from '/console/html.js';
import { Confirm } from '/console/inbox/confirm.js';
import { Deny } from '/console/inbox/deny.js';
import { Reject } from '/console/inbox/reject.js';
import { ConfirmCall } from '/console/request-view/confirm-call.js';

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
      html`<${ConfirmCall} what=${what === 'approve' ? 'approve' : 'deny'} byPasskey=${what === 'deny-passkey'} held=${held} others=${others} onYes=${onYes} onClose=${onClose} />`
    );
  }
  if (what === 'approve')
    return html`<${Confirm} entry=${entry} scopes=${deciding.scopes()} onApprove=${() => approve('')} onClose=${onClose} />`;
  return entry.kind === 'access'
    ? html`<${Deny} entry=${entry} onDeny=${deny} onClose=${onClose} />`
    : html`<${Reject} entry=${entry} others=${others} onDeny=${deny} onClose=${onClose} />`;
}
