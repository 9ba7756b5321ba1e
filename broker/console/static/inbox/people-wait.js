// The note about person accounts that wait for confirmation. They are confirmed on their own page, which explains the consequences.
/** @typedef {import('/console/inbox/entries.js').Entry} Entry */
import { ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { mayDecide, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';

/**
 * Returns how many accounts wait; read again after each reading of the inbox.
 *
 * @param {Entry[] | undefined} entries
 */
export function usePeopleWaiting(entries) {
  const owner = useOwner();
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (!entries || !mayDecide(owner)) return;
    // Errors are ignored: the inbox itself reports an unavailable broker.
    ask('GET', '/owner/people?state=unconfirmed&limit=1').then(
      ({ platforms }) => setCount(platforms.reduce((sum, { unconfirmed }) => sum + unconfirmed, 0)),
      () => {},
    );
  }, [entries]);
  return count;
}

/** @param {{ count: number }} props */
export const PeopleWait = ({ count }) => html`
  <p class="notice" data-kind="wait" id="people-wait">
    <span>${count === 1 ? 'An account of a person waits' : `${count} accounts of people wait`} to be confirmed before agents use ${count === 1 ? 'it' : 'them'}.</span>
    <${Link} to="/console/people" class="button compact">Look<//>
  </p>
`;
