// The static keys of an agent: bearers for one connection each, for clients that cannot sign.
/** @typedef {import('../../answers.ts').StaticKey} StaticKey */
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */

import { EndKey } from '/console/agent/end-key.js';
import { Day } from '/console/agent/facts.js';
import { IssueKey } from '/console/agent/issue-key.js';
import { None, Section } from '/console/agent/section.js';
import { html, useState } from '/console/html.js';
import { Ago } from '/console/shell/time.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 15_000;

/** @type {Record<StaticKey['status'], { kind: string, words: string }>} */
const STATUS = {
  live: { kind: 'good', words: 'Works' },
  ended: { kind: '', words: 'Revoked' },
  expired: { kind: '', words: 'Expired' },
};

/** @param {{ agent: WholeAgent, may: boolean }} props */
export function StaticKeys({ agent, may }) {
  const { answer, reload } = useLoaded(/** @type {const} */ (`/owner/agents/${agent.agent_id}/static-keys`), EVERY_MS);
  const [issuing, issue] = useState(false);
  const [ending, end] = useState(/** @type {StaticKey | undefined} */ (undefined));
  const keys = answer?.static_keys ?? [];
  const mayIssue = may && agent.agent_type !== 'child' && agent.status !== 'revoked';
  if (keys.length === 0 && !mayIssue) return null;
  const button = html`<button type="button" class="compact" id="issue-key" onClick=${() => issue(true)}>Issue a key…</button>`;
  return html`<${Section} id="static-keys" title="Static keys" action=${mayIssue && button}>
    ${answer && keys.length === 0 && html`<${None}>None. A static key is for a client that can hold nothing but a bearer; whoever reads it is the agent on one connection.<//>`}
    ${
      keys.length > 0 &&
      html`<ul role="list" class="sheet rows">
        ${keys.map(
          (key) => html`<li class="row line-row" key=${key.id} data-key=${key.id}>
            <${Key} one=${key} />
            ${may && key.status === 'live' && html`<button type="button" class="compact danger" data-verb="end" onClick=${() => end(key)}>Revoke…<span class="unseen"> ${key.label}</span></button>`}
          </li>`,
        )}
      </ul>`
    }
    ${issuing && html`<${IssueKey} agent=${agent} onClose=${() => issue(false)} onDone=${reload} />`}
    ${ending && html`<${EndKey} agent=${agent} one=${ending} onClose=${() => end(undefined)} onDone=${reload} />`}
  <//>`;
}

/** @param {{ one: StaticKey }} props */
function Key({ one }) {
  const { kind, words } = STATUS[one.status];
  return html`<div class="what">
    <p><strong class="theirs">${visibleLine(one.label)}</strong> <span class="badge" data-kind=${kind}>${words}</span></p>
    <p class="small quiet">
      for the connection <span class="theirs">${visibleLine(one.connection.label ?? one.connection.id)}</span> · ${one.last_used_at ? html`last used <${Ago} at=${one.last_used_at} />` : 'never used'} · until <${Day} at=${one.expires_at} />
    </p>
  </div>`;
}
