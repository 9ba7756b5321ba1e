// The content of an open card.
/** @typedef {import('/console/inbox/entries.js').Act} Act */
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
/** @typedef {ReturnType<typeof import('/console/inbox/use-deciding.js').useDeciding>} Deciding */
import { html } from '/console/html.js';
import { Access } from '/console/inbox/access.js';
import { Approval } from '/console/inbox/approval.js';
import { isWaiting } from '/console/inbox/entries.js';
import { Registration } from '/console/inbox/registration.js';
import { Suspend } from '/console/inbox/suspend.js';

const KINDS = { approval: Approval, access: Access, registration: Registration };

/**
 * `passkeys`: whether this owner can decide by passkey here. `act(what)` starts a decision; `reload()` reads the inbox immediately.
 *
 * @param {{ entry: Entry, deciding: Deciding, passkeys: boolean, act: (what: Act) => void, reload: () => void }} props
 */
export const Body = ({ entry, deciding, passkeys, act, reload }) => html`
  <${KINDS[entry.kind]}
    entry=${entry}
    version=${deciding.version}
    waits=${isWaiting(entry)}
    busy=${deciding.busy[entry.key]}
    passkeys=${passkeys}
    shown=${deciding.shown}
    act=${act}
  />
  <${Suspend} entry=${entry} done=${reload} />
`;
