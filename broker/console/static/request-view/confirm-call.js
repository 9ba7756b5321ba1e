// The confirmation of a decision on a held call by click or key. It repeats the key facts, since the dialog covers
// the request, and takes the note to the agent.
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
/** @typedef {import('/console/approve/held.js').Waits} Waits */
/** @typedef {import('../../answers.ts').StandingBody} StandingBody */
import { html, useState } from '/console/html.js';
import { KeyFacts } from '/console/request-view/key-facts.js';
import { NoteField } from '/console/request-view/note-field.js';
import { ReasonFields, useReason } from '/console/request-view/reason.js';
import { changedTexts } from '/console/request-view/text.js';
import { Dialog } from '/console/shell/dialog.js';
import { checkedTo } from '/console/shell/fields.js';
import { StandingFields } from '/console/standing/fields.js';
import { visibleLine } from '/console/visible.js';

const ABOUT = {
  approve: {
    title: 'Approve this call?',
    verb: 'Approve',
    kind: 'primary',
    after: 'It is made immediately, exactly as you see it, and at most once.',
  },
  deny: {
    title: 'Deny this call?',
    verb: 'Deny',
    kind: 'danger solid',
    after: 'It is never made.',
  },
};

/** Whether others have to approve after this approval. @param {Pick<HeldCall, 'approvers'>} held */
export const isPartly = ({ approvers }) => approvers !== null && approvers.given + 1 < approvers.needed;
/** For a call whose agent, platform or connection has changed, which may prevent it. */
const IF_MADE = 'If it is made, then immediately, exactly as you see it, and at most once.';
const PARTLY = 'Others have to approve it, too. Then it is made, exactly as you see it, and at most once.';

/**
 * `held`: the call as shown. `byPasskey`: whether a passkey signs the decision, which is then for one call only. `others`: how many more calls of
 * the same agent wait, which can be denied, too. `onYes(note, all, standing)`: the note is empty when none was written; `standing`: a standing
 * approval that goes with an approval. `id`: the id of the call when `held` has none. `written` and
 * `terms`: a note, and a standing approval, to begin with, such as those of a decision that failed.
 *
 * @param {{
 *   what: 'approve' | 'deny', held: HeldCall | Waits, id?: string, others?: number, byPasskey?: boolean, written?: string, terms?: StandingBody,
 *   onYes: (note: string, all: boolean, standing?: StandingBody) => void, onClose: () => void,
 * }} props
 */
export function ConfirmCall({ what, held, id, others = 0, byPasskey = false, written, terms, onYes, onClose }) {
  const [standing, setStanding] = useState(/** @type {StandingBody | 'wrong' | undefined} */ (undefined));
  const approvalId = 'approval_id' in held ? held.approval_id : id;
  const [all, setAll] = useState(false);
  const reason = useReason(written);
  const { note, own, write } = reason;
  const { title, verb, kind, after } = ABOUT[what];
  const many = what === 'deny' && others > 0 && !byPasskey;
  return html`
    <${Dialog} title=${title} onClose=${onClose} onSubmit=${() => standing !== 'wrong' && onYes(note, all, standing)}>
      <${KeyFacts} held=${held} />
      ${
        what === 'deny'
          ? html`<${ReasonFields} reason=${reason} whom=${html`<span class="theirs">${visibleLine(held.agent.name)}</span>`} />`
          : html`<${NoteField} id="own" note=${own} setNote=${write} max=${900} />`
      }
      ${
        many &&
        html`<label class="check">
          <input type="checkbox" id="deny-all" checked=${all} onChange=${checkedTo(setAll)} />
          Also deny the other ${others === 1 ? 'call' : `${others} calls`} of this agent that ${others === 1 ? 'waits' : 'wait'}
        </label>`
      }
      ${what === 'approve' && approvalId && html`<${StandingFields} id=${approvalId} written=${terms} hear=${setStanding} />`}
      <p class="quiet small">${what === 'deny' ? after : isPartly(held) ? PARTLY : changedTexts(held).length > 0 ? IF_MADE : after}</p>
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class=${kind} id=${what} autofocus=${what === 'approve'} disabled=${standing === 'wrong'}>${all ? `Deny all ${others + 1}` : byPasskey ? `${verb} with passkey` : verb}</button>
      </div>
    <//>
  `;
}
