// The emergency stop for all agents or a platform, within two clicks of every page; and the banner on every page while all agents are stopped.
/** @typedef {import('../../answers.ts').Organisation} Organisation */
import { ask } from '/console/api.js';
import { html, useRef, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Ago } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 10_000;
/** A button whose action became the opposite one ignores clicks of a pointer for this time: the second click of a double click, for example. */
const SETTLES_MS = 500;

/** Returns whether all agents are stopped, for `StopButton` and `Stopped`; and whether the store was restored. */
export function useStop() {
  const { answer, reload } = useLoaded('/owner/organisation', INTERVAL_MS);
  const [asking, ask] = useState(false);
  return { stopped: answer?.agents_stopped ?? null, restored: answer?.restored ?? null, reload, asking, ask };
}

/** @typedef {ReturnType<typeof useStop>} Stop */

/** @param {{ stop: Stop }} props */
export const StopButton = ({ stop: { ask } }) =>
  html`<button type="button" class="compact danger" id="stop" onClick=${() => ask(true)}>Stop…</button>`;

/** The banner above every page. @param {{ stop: Stop }} props */
export function Stopped({ stop }) {
  const owner = useOwner();
  const { owners = [], former = [] } = useLoaded('/owner/owners', 60_000).answer ?? {};
  const { stopped, asking, ask, reload } = stop;
  const by = [...owners, ...former].find(({ id }) => id === stopped?.by)?.email;
  return html`
    ${
      stopped &&
      html`<div class="notice" data-kind="bad" role="status" id="all-stopped">
        <span><strong>All agents are stopped</strong>, <${Ago} at=${stopped.since} />${by && html`, by <span class="theirs">${visibleLine(by)}</span>`}${stopped.reason && html`: <span class="theirs">“${visibleLine(stopped.reason)}”</span>`}. Every call is refused.</span>
        ${mayChange(owner) && html`<button type="button" class="compact" id="to-resume" onClick=${() => ask(true)}>Resume…</button>`}
      </div>`
    }
    ${asking && html`<${StopDialog} stopped=${stopped} admins=${owners.filter(({ role }) => role === 'admin').map(({ email }) => email)} onClose=${() => ask(false)} onDone=${reload} />`}
  `;
}

// The dialog that stops agents and resumes them, and says what each does.
/** @typedef {NonNullable<Organisation['agents_stopped']>} AgentsStopped */

/** `admins`: e-mail addresses of the admins. @param {{ stopped: AgentsStopped | null, admins: readonly string[], onClose: () => void, onDone: () => void }} props */
function StopDialog({ stopped, admins, onClose, onDone }) {
  const owner = useOwner();
  const announce = useAnnounce();
  const { busy, problem, run } = useDoing();
  const [reason, setReason] = useState('');
  // The dialog does what it said when it opened: a button that stops must never become one that resumes, under the pointer or before Enter.
  const [resumes] = useState(stopped !== null);
  const over = !busy && (stopped !== null) !== resumes;
  if (!mayChange(owner))
    return html`<${Dialog} title="Stop agents or a platform" onClose=${onClose}>
      <p>Your role is ${owner.role}: only an admin can stop all agents or a platform, and resume them.</p>
      ${admins.length > 0 && html`<p>Ask ${admins.map((email, at) => html`${at > 0 && (at === admins.length - 1 ? ' or ' : ', ')}<strong class="theirs">${visibleLine(email)}</strong>`)}.</p>`}
      <div class="buttons"><button type="button" onClick=${onClose}>Close</button></div>
    <//>`;
  const words = reason.trim() ? { reason: reason.trim() } : {};
  const change = () =>
    !over &&
    run(async () => {
      if (resumes) await ask('POST', '/owner/agents/resume-all', words);
      else await ask('POST', '/owner/agents/suspend-all', words);
      announce(resumes ? 'All agents may call again.' : 'All agents are stopped.', 'good');
      onClose();
      onDone();
    });
  return html`<${Dialog} title=${resumes ? 'All agents are stopped' : 'Stop agents or a platform'} onClose=${onClose} onSubmit=${change}>
    ${resumes ? html`<${Resuming} />` : html`<${Stopping} />`}
    <div class="field">
      <label for="stop-why">Why <span class="quiet">(optional)</span></label>
      <input id="stop-why" maxlength="500" autocomplete="off" value=${reason} onInput=${valueTo(setReason)} />
      <p class="hint">${resumes ? 'It stays on record.' : 'The agents read it, and it stays on record.'}</p>
    </div>
    <${Problem} problem=${problem} />
    ${over && html`<p class="notice" data-kind="wait" role="status">${resumes ? 'The agents have been resumed meanwhile. To stop them, close this and open it again.' : 'All agents have been stopped meanwhile. Close this to see by whom.'}</p>`}
    <button type="submit" id="stop-all" class=${resumes ? 'primary' : 'danger solid'} disabled=${busy || over}>${resumes ? 'Resume all agents' : 'Stop all agents'}</button>
    <${Platforms} />
    <div class="buttons"><button type="button" onClick=${onClose}>Close</button></div>
  <//>`;
}

const Stopping = () => html`
  <ul class="says">
    <li>Every call of every agent is refused from the next one on, including agents that are added later.</li>
    <li>Answers that agents are reading are cut within two seconds. What was already sent to a platform is not undone.</li>
    <li>Held calls stay pending; one that is approved meanwhile is not made.</li>
    <li>When you resume, agents that were suspended individually stay suspended.</li>
  </ul>
`;

const Resuming = () => html`
  <ul class="says">
    <li>Agents may call again immediately, with everything that they are granted.</li>
    <li>Agents that were suspended or revoked individually stay so.</li>
  </ul>
`;

// Stops one platform: every call to it is refused, from any agent.

/** Renders nothing when there are no platforms. */
function Platforms() {
  const { answer, reload } = useLoaded('/owner/platforms', INTERVAL_MS);
  const announce = useAnnounce();
  const { problem, run } = useDoing();
  const platforms = answer?.platforms ?? [];
  if (platforms.length === 0) return null;
  const change = (/** @type {(typeof platforms)[number]} */ { platform_id, name, suspended }) =>
    run(async () => {
      await ask(
        'POST',
        /** @type {const} */ (`/owner/platforms/${platform_id}/${suspended ? 'resume' : 'suspend'}`),
        {},
      );
      announce(`${visibleLine(name)} ${suspended ? 'takes calls again.' : 'is stopped.'}`, 'good');
      await reload();
    });
  return html`<section>
    <h3>One platform</h3>
    <p class="small quiet">Calls to it are refused for every agent from the next one on; calls to others go on.</p>
    <ul role="list" class="stop-platforms">
      ${platforms.map((one) => html`<${OnePlatform} key=${one.platform_id} one=${one} change=${() => change(one)} />`)}
    </ul>
    <${Problem} problem=${problem} />
  </section>`;
}

/** @param {{ one: { platform_id: string, name: string, suspended: boolean }, change: () => void }} props */
function OnePlatform({ one: { platform_id, name, suspended }, change }) {
  const shown = useRef({ suspended, since: Number.NEGATIVE_INFINITY });
  if (shown.current.suspended !== suspended) shown.current = { suspended, since: performance.now() };
  const clicked = (/** @type {MouseEvent} */ { detail }) => {
    const isPointer = detail > 0;
    if (!isPointer || performance.now() - shown.current.since >= SETTLES_MS) change();
  };
  return html`<li data-platform=${platform_id}>
    <span class="theirs">${visibleLine(name)}</span> ${suspended && html`<span class="badge" data-kind="bad">Stopped</span>`}
    <button type="button" class=${`compact ${suspended ? '' : 'danger'}`} onClick=${clicked}>${suspended ? 'Resume' : 'Stop'}<span class="unseen"> ${name}</span></button>
  </li>`;
}
