// The bar at the end of a held call's page: the most important message, the note, and the buttons, in the same order as on other pages.
/** @typedef {import('/console/html.js').Children} Children */
/** @typedef {import('/console/approve/held.js').Me} Me */
/** @typedef {import('/console/approve/held.js').Waits} Waits */
/** @typedef {import('/console/approve/decision-methods.js').Verb} Verb */
/** @typedef {import('/console/approve/decision-methods.js').DecisionMethods} DecisionMethods */
import { html } from '/console/html.js';
import { wasCancelled } from '/console/passkeys/ceremony.js';
import { keepPlace } from '/console/place.js';
import { approvedInPart } from '/console/request-view/approvers.js';
import { NoteField } from '/console/request-view/note-field.js';

/** Navigates to sign-in, which leads back here. */
const signIn = () => {
  keepPlace();
  location.assign('/console/sign-in');
};

/**
 * @typedef {object} Bar
 * @property {DecisionMethods} ways
 * @property {Me | undefined} me
 * @property {Waits} held
 * @property {boolean} approved this person has approved, and others have to, too
 * @property {boolean} seen
 * @property {boolean} changed
 * @property {boolean} over
 * @property {{ verb: Verb, device: boolean } | undefined} busy
 * @property {Error | undefined} problem
 */

/**
 * `act(verb)` starts the decision, `older()` approves with a passkey that is not discoverable, `choose()` switches between passkey and click.
 *
 * @param {Bar & {
 *   note: string, setNote: (note: string) => void,
 *   act: (verb: Verb) => void, older: () => void, choose: () => void,
 * }} props
 */
export function DecideBar({ note, setNote, act, older, choose, ...bar }) {
  const { ways, me, held, approved, seen, changed, over, busy, problem } = bar;
  const byPasskey = ways.how === 'passkey';
  const button = (
    /** @type {Verb} */ verb,
    /** @type {string} */ words,
    /** @type {string} */ doing,
    /** @type {string} */ kind,
    /** @type {boolean} */ possible,
  ) => html`<button type="button" class="${verb} ${kind} ${byPasskey ? 'passkey' : ''}"
    disabled=${!possible || over || Boolean(busy)} onClick=${() => act(verb)}>
    ${busy?.verb === verb ? (busy.device ? 'Waiting for your passkey…' : doing) : byPasskey ? `${words} with passkey` : `${words}…`}
  </button>`;
  const readable = held.request !== null;
  // An older (not discoverable) passkey of the agent's owner can approve, but not deny.
  const olderToo = !ways.owner && held.passkeys && wasCancelled(problem) && readable && seen && !changed;
  return html`<footer class="decide">
    <${Said} ...${bar} />
    ${byPasskey && html`<${NoteField} note=${note} setNote=${setNote} />`}
    ${
      ways.how &&
      html`<div class="choices">
        ${button('approve', 'Approve', 'Approving…', 'primary', readable && seen && !changed && !approved)}
        ${button('deny', 'Deny', 'Denying…', 'danger', true)}
      </div>`
    }
    <div class="other-ways">
      ${
        // The sign-in alone would lead to the oldest organisation again.
        me?.elsewhere &&
        me.organisations?.map(
          ({ id, name }) =>
            html`<a key=${id} class="switch theirs" href=${`/console/oidc/start?organisation=${id}&page=${location.pathname}`}>Switch to ${name}</a>`,
        )
      }
      ${!ways.owner && html`<button type="button" class="sign-in ${ways.how ? 'link' : 'primary'}" onClick=${signIn}>${ways.how ? 'Sign in instead' : 'Sign in to decide'}</button>`}
      ${ways.both && html`<button type="button" class="link choose" onClick=${choose}>${byPasskey ? 'Decide by a click instead' : 'Decide with a passkey instead'}</button>`}
      ${olderToo && html`<button type="button" class="link older" onClick=${older}>Approve with an older passkey</button>`}
    </div>
  </footer>`;
}

const showFolded = () => {
  /** @type {HTMLElement | null} */
  const found = document.querySelector('.folded button, .recipients + button');
  found?.scrollIntoView({ block: 'center', behavior: 'smooth' });
  found?.focus({ preventScroll: true });
};

/**
 * The one message above the buttons: the most important for the current state.
 *
 * @param {Bar} props
 */
function Said({ problem, approved, seen, changed, over, ways, me, held }) {
  const say = (/** @type {Children} */ text, /** @type {string | undefined} */ kind) =>
    html`<p class="said small" data-kind=${kind} role="status">${text}</p>`;
  if (over) return say('Expired: this can no longer be decided.', 'bad');
  if (problem) return say(problem.message, wasCancelled(problem) ? 'wait' : 'bad');
  if (approved && held.approvers) return say(approvedInPart(held.approvers), 'good');
  if (changed) return say('Look again before you decide.', 'bad');
  if (me && !me.elsewhere && !me.mayDecide)
    return say('Your role is viewer, which cannot decide. Ask an approver or admin.', 'wait');
  if (!seen && held.request && ways.how)
    return say(
      html`See all of it, then approve. <button type="button" class="link" onClick=${showFolded}>What is folded?</button>`,
      'wait',
    );
  if (ways.without && !ways.owner) return say(ways.without, 'wait');
  if (me?.elsewhere) return say('You are signed in to another organisation.', 'wait');
  if (!ways.owner && held.passkey_deciders === 'agents_owner' && ways.how)
    return say(
      "Without signing in, only a passkey of the agent's owner decides here. Anybody else signs in first.",
      'wait',
    );
  return html`<p class="said" role="status"></p>`;
}
