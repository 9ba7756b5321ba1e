// What an agent waits for: held calls and access requests.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { Section } from '/console/agent/section.js';
import { html } from '/console/html.js';
import { Sentence } from '/console/request-view/sentence.js';
import { useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 10_000;
const SHOWN = 5;

/** Renders nothing when nothing waits. @param {{ agent: WholeAgent }} props */
export function Waits({ agent: { agent_id, activity } }) {
  const path = /** @type {const} */ (`/owner/approvals?status=pending&agent=${agent_id}&limit=${SHOWN}`);
  const { answer } = useLoaded(path, INTERVAL_MS);
  const { waiting_calls, waiting_requests } = activity;
  if (waiting_calls + waiting_requests === 0) return null;
  const calls = answer?.approvals ?? [];
  const more = waiting_calls - calls.length;
  return html`<${Section} id="waits" title="Waits for a decision">
    <ul role="list" class="sheet rows">
      ${calls.map(
        ({ approval_id, sentence, platform, created_at }) => html`<li class="row line-row" key=${approval_id}>
          <span class="theirs">It wants to <${Sentence} sentence=${sentence} /> <span class="quiet">on ${visibleLine(platform)} · <${Ago} at=${created_at} /></span></span>
          <a href=${`/approve/${approval_id}`}>Look<span class="unseen"> at this call</span></a>
        </li>`,
      )}
      ${
        (more > 0 || waiting_requests > 0) &&
        html`<li class="row line-row"><${Link} to=${`/console?agent=${agent_id}`}>
          ${[more > 0 && `${more} more held ${more === 1 ? 'call' : 'calls'}`, waiting_requests > 0 && `${waiting_requests} access ${waiting_requests === 1 ? 'request' : 'requests'}`].filter(Boolean).join(' and ')} in the inbox
        <//></li>`
      }
    </ul>
  <//>`;
}
