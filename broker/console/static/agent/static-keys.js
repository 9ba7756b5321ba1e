// The static keys of an agent: bearers for one connection each, for clients that cannot sign.
/** @typedef {import('../../answers.ts').StaticKey} StaticKey */
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
/** @typedef {import('/console/agents/status-labels.js').Badge} Badge */

import { EndKey } from '/console/agent/end-key.js';
import { Day } from '/console/agent/facts.js';
import { IssueKey } from '/console/agent/issue-key.js';
import { None, Section } from '/console/agent/section.js';
import { badgeOf } from '/console/agents/status-labels.js';
import { html, useState } from '/console/html.js';
import { Ago } from '/console/shell/time.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 15_000;

/** @type {Record<Exclude<StaticKey['status'], 'live'>, Badge>} */
const OVER = {
  ended: { kind: '', words: 'Revoked' },
  expired: { kind: '', words: 'Expired' },
};

/**
 * Returns the state of a static key as a badge. The key acts as its agent, so nothing that stops the agent lets the key work; a key that was never
 * used is marked so.
 *
 * @param {StaticKey} one
 * @param {WholeAgent} agent
 * @returns {Badge}
 */
function badgeOfKey({ status, last_used_at }, agent) {
  if (status !== 'live') return OVER[status];
  if (agent.status !== 'active' || agent.contained) {
    const { kind, words } = badgeOf(agent);
    return { kind, words: `Agent: ${words.slice(0, 1).toLowerCase()}${words.slice(1)}` };
  }
  return last_used_at === null ? { kind: '', words: 'Not used yet' } : { kind: 'good', words: 'Works' };
}

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
    ${answer && keys.length === 0 && html`<${None}>None. A static key is for a client that can send only a bearer token; anyone who has it can act as the agent on one connection.<//>`}
    ${
      keys.length > 0 &&
      html`<ul role="list" class="sheet rows">
        ${keys.map(
          (key) => html`<li class="row line-row" key=${key.id} data-key=${key.id}>
            <${Key} one=${key} agent=${agent} />
            ${may && key.status === 'live' && html`<button type="button" class="compact danger" data-verb="end" onClick=${() => end(key)}>Revoke…<span class="unseen"> ${key.label}</span></button>`}
          </li>`,
        )}
      </ul>`
    }
    ${issuing && html`<${IssueKey} agent=${agent} onClose=${() => issue(false)} onDone=${reload} />`}
    ${ending && html`<${EndKey} agent=${agent} one=${ending} onClose=${() => end(undefined)} onDone=${reload} />`}
  <//>`;
}

/** @param {{ one: StaticKey, agent: WholeAgent }} props */
function Key({ one, agent }) {
  const { kind, words } = badgeOfKey(one, agent);
  return html`<div class="what">
    <p><strong class="theirs">${visibleLine(one.label)}</strong> <span class="badge" data-kind=${kind}>${words}</span></p>
    <p class="small quiet">
      for the connection <span class="theirs">${visibleLine(one.connection.label ?? one.connection.id)}</span> · ${one.last_used_at ? html`last used <${Ago} at=${one.last_used_at} />` : 'never used'} · until <${Day} at=${one.expires_at} />
    </p>
  </div>`;
}
