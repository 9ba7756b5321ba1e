// Fills an empty page with real data: the sandbox's agent makes real calls, so no row is fake.
/** @typedef {import('../../answers.ts').DemoMade} DemoMade */
import { RESULTS } from '/console/activity/row-labels.js';
import { ask } from '/console/api.js';
import { html } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';

const SLOW_INTERVAL_MS = 60_000;
const HOW = '/docs/console#empty-pages';

/**
 * Shown inside an `Empty`. `shown` reads the page again. `of`: the agent of the page; only the sandbox's agent has a demo.
 *
 * @param {{ shown: (made: DemoMade) => unknown, of?: string }} props
 */
export function Demo({ shown, of }) {
  const owner = useOwner();
  const announce = useAnnounce();
  const { busy, problem, run } = useDoing();
  const { answer } = useLoaded('/owner/demo', SLOW_INTERVAL_MS);
  if (!answer || (of !== undefined && of !== answer.agent_id)) return null;
  if (answer.why_not !== null)
    return html`<p class="quiet small" id="no-demo">${answer.why_not} <a href=${HOW} target="_blank" rel="noreferrer">See this page live in one<//></p>`;
  if (!mayChange(owner))
    return html`<p class="quiet small" id="no-demo">Your role is ${owner.role}: an admin can show this page live, with the sandbox.</p>`;
  const show = () =>
    run(async () => {
      const made = await ask('POST', '/owner/demo', {});
      // A success is visible on the page, and is announced to screen readers only; any other result is also shown as a message.
      announce(describeDemo(made), made.calls[0]?.result === 'allowed' ? 'good' : 'wait');
      await shown(made);
      keepFocus();
    });
  return html`<div class="demo" id="demo">
    <p class="quiet">Or see it live: the sandbox’s agent calls the small shop that runs with this broker, and nothing else. One call is allowed, one is
      refused, and a refund of 1 EUR waits for a decision, of which your channels get a notice.</p>
    <${Problem} problem=${problem} />
    <p><button type="button" id="show-demo" disabled=${busy} onClick=${show}>Show me with the sandbox</button></p>
  </div>`;
}

/** The purpose of each call, in order. */
const CALLS = ['Reading the issues', 'Closing one with a scope that reads', 'A refund of 1 EUR'];

function describeDemo(/** @type {DemoMade} */ { calls, approval_id }) {
  const said = calls.map(
    ({ result, reason }, at) => `${CALLS[at]}: ${result ? RESULTS[result].words.toLowerCase() : reason}.`,
  );
  const waits =
    approval_id === null ? [] : [`${calls.length < CALLS.length ? 'The refund of before' : 'It'} waits in the inbox.`];
  return ['sandbox-agent called the sandbox.', ...said, ...waits].join(' ');
}

/** The pressed button disappears with the empty state: the focus moves to the heading. */
function keepFocus() {
  requestAnimationFrame(() => {
    const heading = document.querySelector('main h1');
    if (!(heading instanceof HTMLElement) || document.activeElement !== document.body) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  });
}
