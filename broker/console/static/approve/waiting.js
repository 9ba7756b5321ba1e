// A call that waits: the request, and the buttons that decide it.
/** @typedef {import('/console/html.js').Children} Children */
/** @typedef {import('/console/approve/held.js').Held} Held */
/** @typedef {import('/console/approve/held.js').Me} Me */
/** @typedef {import('/console/approve/held.js').Owner} Owner */
/** @typedef {import('/console/approve/held.js').Status} Status */
/** @typedef {import('/console/approve/held.js').Waits} Waits */
/** @typedef {import('/console/approve/held.js').WaitingState} WaitingState */
import { asError, ask, Refused } from '/console/api.js';
import { html, useMemo, useState } from '/console/html.js';
import {
  approveWithPasskey,
  CeremonyFailed,
  enrol,
  hasEnded,
  suggestedName,
  wasCancelled,
  withoutPasskeys,
} from '/console/passkeys/ceremony.js';
import { keepPlace } from '/console/place.js';
import { RequestView, useSecondsLeft } from '/console/request-view/request-view.js';
import { valueTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

/** Leads to sign-in, and from there back. */
const signIn = () => {
  keepPlace();
  location.assign('/console/sign-in');
};

/** @typedef {{ click: Owner | undefined, passkey: boolean, why: string | undefined }} Ways */

/**
 * In which ways whoever looks may decide; `click`: who may by a click. `me`: null while it is not known yet.
 *
 * @param {Waits} held
 * @param {Me | null | undefined} me
 * @returns {Ways}
 */
function waysOf(held, me) {
  const click = me && !me.elsewhere && me.mayDecide ? me : undefined;
  // Only the owner of the agent has the passkeys that count.
  const theirs = !me || me.elsewhere || me.isOwner;
  const why = withoutPasskeys();
  return { click, passkey: Boolean(held.passkeys && theirs && !why), why: held.passkeys && theirs ? why : undefined };
}

/** @param {{ id: string, state: WaitingState } & Pick<Held, 'me' | 'deciding' | 'look' | 'lookAnew'>} props */
export function Waiting({ id, state: { held, changed, stale }, me, deciding, look, lookAnew }) {
  const [seen, setSeen] = useState(false);
  const [busy, setBusy] = useState(/** @type {string | undefined} */ (undefined));
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const [note, setNote] = useState('');
  const seconds = useSecondsLeft(held);
  const ways = waysOf(held, me);
  const over = seconds === 0;

  const decide =
    (/** @type {string} */ what, /** @type {Status} */ verb, /** @type {() => Promise<unknown>} */ work) =>
    async () => {
      if (busy) return;
      setBusy(what);
      setProblem(undefined);
      try {
        await deciding(verb, work);
      } catch (error) {
        setProblem(asError(error));
        if (hasEnded(error) || (error instanceof Refused && [409, 410].includes(error.status))) await look();
      } finally {
        setBusy(undefined);
      }
    };
  const byPasskey = decide('passkey', 'approved', async () => {
    await expectSame(id, held.request_hash);
    await approveWithPasskey(id, () => setBusy('approved'));
  });
  const byClick = (/** @type {'approve' | 'deny'} */ verb, /** @type {Status} */ status) =>
    decide(status, status, () =>
      ask('POST', `/owner/approvals/${id}/${verb}`, {
        request_hash: held.request_hash,
        ...(note.trim() !== '' && { note: note.trim() }),
      }),
    );

  const { who, how } = recordOf(ways);
  // Laid out anew only when it is another one, not with each second that passes.
  const view = useMemo(
    () => html`<${RequestView} key=${held.request_hash} held=${held} onSeen=${setSeen} who=${who} how=${how} />`,
    [held.request, held.request_hash, who, how],
  );
  const { parent } = held.agent;
  const mayApprove = seen && !changed && !over && !busy;
  return html`
    <h1><span class="theirs">${visibleLine(held.agent.name)}</span> <span class="quiet">${parent && html`(a child of <span class="theirs">${visibleLine(parent.name)}</span>) `}asks to make this call</span></h1>
    ${
      changed &&
      html`<div class="notice" data-kind="bad" role="alert"><p>The request is no longer the one that you looked at.</p>
        <button type="button" onClick=${lookAnew}>Look again</button></div>`
    }
    ${stale && html`<p class="notice" data-kind="wait" role="status">${stale} What you see may be old.</p>`}
    ${!changed && view}
    ${
      ways.click &&
      html`<div class="field note">
        <label for="note">Note for the agent <span class="quiet">(optional)</span></label>
        <textarea id="note" rows="2" maxlength="1000" value=${note} onInput=${valueTo(setNote)}></textarea>
        ${ways.passkey && html`<span class="hint">Sent with Deny and with Approve by click; a passkey approves without words.</span>`}
      </div>`
    }
    ${ways.click?.isOwner && !held.passkeys && html`<${Offer} look=${look} />`}
    <footer class="decide">
      <${Said} problem=${problem} seen=${seen} changed=${changed} over=${over} ways=${ways} me=${me} held=${held} />
      <${Buttons} ways=${ways} me=${me} held=${held} busy=${busy} over=${over} mayApprove=${mayApprove}
        byPasskey=${byPasskey} byClick=${byClick} />
    </footer>
  `;
}

/**
 * The challenge is bound to the request that waits, whatever was shown: throws when that is another one.
 *
 * @param {string} id
 * @param {string} hash
 */
async function expectSame(id, hash) {
  const now = await ask('GET', `/approve/${id}/request?known=${hash}`, undefined, { signIn: false });
  if (now.status === 'pending' && now.request_hash !== hash)
    throw new CeremonyFailed('The request is no longer the one that you looked at.', { ended: true });
}

const recordOf = (/** @type {Ways} */ ways) => {
  if (ways.passkey && ways.click) return { who: ways.click.email, how: 'by passkey, or in the console' };
  if (ways.click) return { who: ways.click.email, how: 'in the console' };
  if (ways.passkey) return { who: 'the owner of the agent, who has the passkey', how: 'by passkey, and which one' };
  return { who: 'whoever decides', how: 'by passkey, or in the console' };
};

/** @type {Partial<Record<string, string>>} */
const PASSKEY_WORDS = { passkey: 'Waiting for your passkey…', approved: 'Approving…' };

/**
 * @typedef {object} Deciders
 * @property {Ways} ways
 * @property {Me | null | undefined} me
 * @property {Waits} held
 * @property {boolean} over
 */

/**
 * @param {Deciders & {
 *   busy: string | undefined,
 *   mayApprove: boolean,
 *   byPasskey: () => Promise<void>,
 *   byClick: (verb: 'approve' | 'deny', status: Status) => () => Promise<void>,
 * }} props
 */
function Buttons({ ways, me, held, busy, over, mayApprove, byPasskey, byClick }) {
  if (me === null) return null;
  const approve = html`<button type="button" class="approve ${ways.passkey ? '' : 'primary'}" disabled=${!mayApprove}
    onClick=${byClick('approve', 'approved')}>${busy === 'approved' ? 'Approving…' : ways.passkey ? 'Approve by click' : 'Approve'}</button>`;
  const deny = html`<button type="button" class="deny danger" disabled=${over || Boolean(busy)}
    onClick=${byClick('deny', 'denied')}>${busy === 'denied' ? 'Denying…' : 'Deny'}</button>`;
  return html`<div class="choices">
    ${
      ways.passkey &&
      html`<button type="button" class="primary passkey" disabled=${!mayApprove} onClick=${byPasskey}>
        ${PASSKEY_WORDS[busy ?? ''] ?? 'Approve with passkey'}
      </button>`
    }
    ${ways.click && held.request && approve}
    ${ways.click && deny}
    ${
      !ways.click &&
      html`<button type="button" class="sign-in ${ways.passkey ? 'plain' : 'primary'}" onClick=${signIn}>
        ${ways.passkey ? 'Sign in to deny' : 'Sign in to decide'}
      </button>`
    }
  </div>`;
}

const showFolded = () => {
  /** @type {HTMLElement | null} */
  const found = document.querySelector('.folded button, .recipients + button');
  found?.scrollIntoView({ block: 'center', behavior: 'smooth' });
  found?.focus({ preventScroll: true });
};

/**
 * The one sentence above the buttons that matters most now.
 *
 * @param {Deciders & { problem: Error | undefined, seen: boolean, changed: boolean }} props
 */
function Said({ problem, seen, changed, over, ways, me, held }) {
  const say = (/** @type {Children} */ text, /** @type {string | undefined} */ kind) =>
    html`<p class="said small" data-kind=${kind} role="status">${text}</p>`;
  if (over) return say('Time is over: nobody can decide this any more.', 'bad');
  if (problem) return say(problem.message, wasCancelled(problem) ? 'wait' : 'bad');
  if (changed) return say('Look again before you decide.', 'bad');
  if (!seen && held.request)
    return say(
      html`See all of it, then approve. <button type="button" class="link" onClick=${showFolded}>What is folded?</button>`,
      'wait',
    );
  if (ways.why && !ways.click) return say(ways.why, 'wait');
  if (me?.elsewhere) return say('You are signed in to another organisation.', 'wait');
  if (me && !me.mayDecide) return say('Your role is viewer: you may look. Ask an approver or admin.', 'wait');
  if (me === undefined && !held.passkeys)
    return say('Approving takes a passkey or a session. There is no passkey yet.', undefined);
  return html`<p class="said" role="status"></p>`;
}

/**
 * To whoever is signed in without a passkey.
 *
 * @param {Pick<Held, 'look'>} props
 */
function Offer({ look }) {
  const [said, setSaid] = useState(/** @type {string | undefined} */ (undefined));
  if (withoutPasskeys()) return null;
  const add = () =>
    enrol(suggestedName()).then(
      ({ device_name }) => {
        setSaid(`“${device_name}” can approve from now on.`);
        return look();
      },
      (thrown) => setSaid(asError(thrown).message),
    );
  return html`<aside class="sheet offer">
    <div><h2>Approve with a touch</h2>
      <p class="quiet small">With a passkey on this device you need not sign in next time.</p></div>
    <button type="button" onClick=${add}>Add a passkey</button>
    <p class="small" role="status">${said}</p>
  </aside>`;
}
