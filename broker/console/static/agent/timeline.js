// The audit rows of an agent: its calls and the changes made to it, newest first.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { ActivityRow } from '/console/activity/activity-row.js';
import { Section } from '/console/agent/section.js';
import { html } from '/console/html.js';
import { useChangers } from '/console/shell/changers.js';
import { Demo } from '/console/shell/demo.js';
import { Failed, Loading } from '/console/shell/empty.js';
import { Link } from '/console/shell/router.js';
import { useLoaded } from '/console/shell/use-loaded.js';

const EVERY_MS = 10_000;
const SHOWN = 20;

/** @param {{ agent: WholeAgent }} props */
export function Timeline({ agent: { id, agent_id, name } }) {
  const { answer, error, reload } = useLoaded(
    /** @type {const} */ (`/owner/audit?agent=${id}&limit=${SHOWN}`),
    EVERY_MS,
  );
  const names = useChangers().set(agent_id, name);
  const rows = answer?.rows;
  const all = html`<${Link} to=${`/console/activity?agent=${agent_id}`} class="small" id="all-activity">All of it<span class="unseen"> in Activity</span><//>`;
  return html`<${Section} id="timeline" title="Timeline" action=${rows && rows.length > 0 && all}>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!rows && !error && html`<${Loading} />`}
    ${rows && rows.length < SHOWN && rows.every(({ kind }) => kind === 'event') && html`<div class="sheet none"><p class="quiet">It has made no call yet. Every call leaves a line here, with a signed receipt.</p><${Demo} shown=${reload} of=${agent_id} /></div>`}
    ${rows && rows.length > 0 && html`<ul role="list" class="sheet rows" id="activity">${rows.map((row) => html`<${ActivityRow} key=${row.id} row=${row} names=${names} />`)}</ul>`}
  <//>`;
}
