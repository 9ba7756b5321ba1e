// The view of an opened held call: the exact request, and the buttons that decide it.
/** @typedef {import('/console/inbox/entries.js').CallEntry} CallEntry */
import { html, useState } from '/console/html.js';
import { Buttons } from '/console/inbox/buttons.js';
import { Correct } from '/console/inbox/correct.js';
import { useShown, useWhole } from '/console/inbox/use-whole.js';
import { approvedInPart } from '/console/request-view/approvers.js';
import { RequestView } from '/console/request-view/request-view.js';
import { Failed, Loading } from '/console/shell/loaded.js';
import { mayDecide, useOwner } from '/console/shell/owner.js';

/**
 * `version` changes when the call has to be read again. `shown` receives the request that is on the screen, and whether all of it was seen: nothing
 * else is ever approved. `passkeys`: whether this owner has a passkey that works here.
 *
 * @param {import('/console/inbox/entries.js').Opened<CallEntry> & { passkeys: boolean }} props
 */
export function Approval({ entry, version, waits, busy, passkeys, shown, act }) {
  const owner = useOwner();
  const { whole: held, error, load } = useWhole(entry, version);
  const [seen, setSeen] = useState(false);
  useShown(shown, held, seen, held && { request_hash: held.request_hash });
  if (error) return html`<${Failed} error=${error} again=${load} />`;
  if (!held) return html`<${Loading} />`;
  // A held call whose request cannot be decrypted or parsed cannot be approved.
  const readable = held.request !== null;
  const { approvers } = held;
  const approved =
    approvers && held.approved_before.some((one) => one.approved_by === owner.id) && approvedInPart(approvers);
  const approvable = readable && !approved;
  return html`
    <${RequestView} key=${held.request_hash} held=${held} onSeen=${setSeen} who=${mayDecide(owner) ? owner.email : 'the person who decides'} />
    ${waits && html`<${Correct} key=${`correct ${held.request_hash}`} held=${held} done=${load} />`}
    ${
      waits &&
      html`<${Buttons}
        key=${held.request_hash}
        approve=${approvable && 'Approve…'}
        passkey=${approvable && passkeys}
        seen=${seen}
        why=${approved || (readable && !seen && 'Open what is folded, then approve.')}
        busy=${busy}
        act=${act}
      />`
    }
  `;
}
