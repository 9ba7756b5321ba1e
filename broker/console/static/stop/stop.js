// The emergency stop for all agents or a platform, within two clicks of every page; and the banner on every page while all agents are stopped.
/** @typedef {import('../../answers.ts').Organisation} Organisation */
import { html, useState } from '/console/html.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Ago } from '/console/shell/time.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { StopDialog } from '/console/stop/dialog.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 10_000;

/** Returns whether all agents are stopped, for `StopButton` and `Stopped`; and whether the store was restored. */
export function useStop() {
  const { answer, reload } = useLoaded('/owner/organisation', EVERY_MS);
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
