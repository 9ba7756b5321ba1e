// The page of standing approvals in force: what each lets pass, what is left of it, and a button that revokes it.
/** @typedef {import('../../answers.ts').DemoMade} DemoMade */
/** @typedef {import('../../answers.ts').StandingApproval} StandingApproval */
import { asError, ask, Refused } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Demo } from '/console/shell/demo.js';
import { Empty, Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayDecide, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 15_000;
const PAGE = 100;

export function StandingPage() {
  const path = /** @type {const} */ (`/owner/standing-approvals?limit=${PAGE}`);
  const { answer, error, reload } = useLoaded(path, INTERVAL_MS);
  const [older, setOlder] = useState(
    /** @type {{ rows: StandingApproval[], next: string | null } | undefined} */ (undefined),
  );
  const next = older ? older.next : answer?.next;
  const { busy, problem, run } = useDoing();
  const more = () =>
    run(async () => {
      const page = await ask('GET', `${path}&before=${next}`);
      setOlder((now) => ({ rows: [...(now?.rows ?? []), ...page.standing_approvals], next: page.next }));
    });
  // Only the newest page is read again: a row of an older one is removed here, and may have moved to the newest one.
  const revoked = (/** @type {string} */ id) => {
    setOlder((now) => now && { ...now, rows: now.rows.filter((one) => one.id !== id) });
    reload();
  };
  const newest = new Set(answer?.standing_approvals.map(({ id }) => id));
  const all = answer && [...answer.standing_approvals, ...(older?.rows ?? []).filter(({ id }) => !newest.has(id))];
  return html`
    <div class="page-head"><h1>Standing approvals</h1></div>
    <div class="stack">
      <p class="quiet">Calls that are made without another approval, because somebody approved one like them. After a change of the rule, the grant or the
        platform they are held again.</p>
      ${error && html`<${Failed} error=${error} again=${reload} />`}
      ${!all && !error && html`<${Loading} />`}
      ${all?.length === 0 && html`<${None} />`}
      ${
        all &&
        all.length > 0 &&
        html`<ul role="list" class="sheet rows" id="standing-approvals">
        ${all.map((one) => html`<${Row} key=${one.id} one=${one} revoked=${() => revoked(one.id)} />`)}
      </ul>`
      }
      <${Problem} problem=${problem} />
      ${next && html`<p class="more"><button type="button" id="older" disabled=${busy} onClick=${more}>Show older</button></p>`}
    </div>
  `;
}

/** @param {{ one: StandingApproval, revoked: () => void }} props */
function Row({ one, revoked }) {
  const announce = useAnnounce();
  const owner = useOwner();
  const [busy, setBusy] = useState(false);
  const revoke = async () => {
    setBusy(true);
    try {
      await ask('DELETE', `/owner/standing-approvals/${one.id}`);
      announce('Revoked: calls like it are held again, from the next one on.', 'good');
      revoked();
    } catch (error) {
      announce(asError(error).message, 'bad');
      // It has ended already.
      if (error instanceof Refused && [404, 409].includes(error.status)) revoked();
    }
    setBusy(false);
  };
  const call = one.call?.text ?? `${one.method} ${one.path}`;
  return html`<li class="row standing-row" data-standing=${one.id}>
    <div>
      <p class="theirs"><strong>${visibleLine(one.agent.name)}</strong> ${visibleLine(call)}</p>
      <p class="small">${one.sentence ?? 'Its terms were altered in the store: it lets nothing pass.'}</p>
      <p class="small quiet"><span class="left">${one.left} of ${one.count} left</span> · approved by ${one.decided_by_email ?? 'a former owner'},
        <${Ago} at=${one.created_at} /></p>
    </div>
    ${mayDecide(owner) && html`<button type="button" class="danger" disabled=${busy} onClick=${revoke}>Revoke</button>`}
  </li>`;
}

function None() {
  const [waiting, setWaiting] = useState(/** @type {string | null} */ (null));
  return html`<${Empty} title="No standing approval is in force">
    <p>When you approve a call, you can let the next ones like it pass, too, up to a number and a time that you choose.</p>
    ${
      waiting === null
        ? html`<${Demo} shown=${(/** @type {DemoMade} */ { approval_id }) => setWaiting(approval_id)} />`
        : html`<p id="demo-next"><${Link} to="/console" class="button primary">Approve it in the inbox<//></p>
            <p class="quiet">A refund waits there. Let the next ones like it pass, too: then the standing approval is listed here, and the next refund of a demo passes.</p>`
    }
  <//>`;
}
