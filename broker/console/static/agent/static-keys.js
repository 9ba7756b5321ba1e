// The static keys of an agent: bearers for one connection each, for clients that cannot sign.
/** @typedef {import('../../answers.ts').IssuedStaticKey} IssuedStaticKey */
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
/** @typedef {import('../../answers.ts').StaticKey} StaticKey */
/** @typedef {import('/console/agents/status-labels.js').Badge} Badge */
import { Day } from '/console/agent/facts.js';
import { None, Section } from '/console/agent/section.js';
import { badgeOf } from '/console/agents/status-labels.js';
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Command } from '/console/shell/command.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { useLoaded } from '/console/shell/loaded.js';
import { Question } from '/console/shell/question.js';
import { Ago, exactly } from '/console/shell/time.js';
import { Problem, useDoing, useGone } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 15_000;

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
  const { answer, reload } = useLoaded(
    /** @type {const} */ (`/owner/agents/${agent.agent_id}/static-keys`),
    INTERVAL_MS,
  );
  const [issuing, issue] = useState(false);
  // Here and not in the dialog that asks for it: an answer that arrives when that dialog was closed has the only copy of the key.
  const [issued, setIssued] = useState(/** @type {IssuedStaticKey | undefined} */ (undefined));
  const gone = useGone();
  const announce = useAnnounce();
  const show = (/** @type {IssuedStaticKey} */ one, /** @type {string} */ label) =>
    gone.current
      ? announce(
          `The static key ${visibleLine(label)} of ${visibleLine(agent.name)} was issued after you left the page, and cannot be shown any more. Revoke it, and issue another one.`,
          'bad',
        )
      : setIssued(one);
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
    ${issuing && html`<${IssueKey} agent=${agent} onClose=${() => issue(false)} onIssued=${show} onDone=${reload} />`}
    ${issued && html`<${Issued} issued=${issued} onClose=${() => setIssued(undefined)} />`}
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

/** The dialog that revokes a static key. @param {{ agent: WholeAgent, one: StaticKey, onClose: () => void, onDone: () => void }} props */
function EndKey({ agent, one, onClose, onDone }) {
  const label = visibleLine(one.label);
  const end = async () => {
    await ask('DELETE', /** @type {const} */ (`/owner/agents/${agent.agent_id}/static-keys/${one.id}`));
    onDone();
    return `The key ${label} is revoked.`;
  };
  return html`<${Question} title=${`Revoke the key ${label}?`} verb="Revoke" kind="danger solid" id="end-key" work=${end} onClose=${onClose}>
    <p>Requests with this key are refused permanently, from the next one on. The agent and its other keys stay.</p>
  <//>`;
}

const DAY_S = 24 * 3600;
const DURATIONS = /** @type {const} */ ([
  [7 * DAY_S, '7 days'],
  [30 * DAY_S, '30 days'],
  [90 * DAY_S, '90 days'],
]);

/** Shows a static key, once. @param {{ issued: IssuedStaticKey, onClose: () => void }} props */
const Issued = ({ issued, onClose }) =>
  html`<${Dialog} title="The key" onClose=${onClose}>
    <p>It is shown only once. It works until ${exactly(issued.expires_at)}.</p>
    <${Command} text=${issued.key} />
    <p>Configure the client to send it in place of the platform’s key, to this address instead of the platform’s:</p>
    <${Command} text=${issued.url} />
    <div class="buttons"><button type="button" class="primary" id="kept" onClick=${onClose}>Done</button></div>
  <//>`;

/**
 * The dialog that issues a static key. `onIssued` is also called when it was closed meanwhile.
 *
 * @param {{ agent: WholeAgent, onClose: () => void, onIssued: (issued: IssuedStaticKey, label: string) => void, onDone: () => void }} props
 */
function IssueKey({ agent, onClose, onIssued, onDone }) {
  const connections = useLoaded('/owner/connections', 60_000).answer?.connections ?? [];
  const [label, setLabel] = useState('');
  const [chosen, choose] = useState('');
  const [lasts, setLasts] = useState(String(7 * DAY_S));
  const { busy, problem, gone, run } = useDoing();
  const connection = chosen || connections[0]?.id;
  const issue = () =>
    run(async () => {
      if (!connection) return;
      const body = { label: label.trim(), connection, expires_in_seconds: Number(lasts) };
      const answer = await ask('POST', /** @type {const} */ (`/owner/agents/${agent.agent_id}/static-keys`), body);
      if ('key' in answer) onIssued(answer, body.label);
      if (!gone.current) onClose();
      onDone();
    });
  return html`<${Dialog} title=${`A static key of ${visibleLine(agent.name)}`} onClose=${onClose} onSubmit=${issue}>
    <p class="notice" data-kind="wait">Anyone who has this key can act as the agent on this connection until it expires. If the client can sign its requests, use that instead.</p>
    ${connections.length === 0 && html`<p>There is no connection yet.</p>`}
    <div class="field">
      <label for="key-label">What uses it</label>
      <input id="key-label" required maxlength="100" autocomplete="off" placeholder="OpenAI SDK on the build machine" value=${label} onInput=${valueTo(setLabel)} />
    </div>
    <div class="field">
      <label for="key-connection">Connection</label>
      <select id="key-connection" onChange=${valueTo(choose)}>
        ${connections.map(({ id, label: name, platform }) => html`<option key=${id} value=${id} selected=${id === connection}>${visibleLine(`${name} (${platform})`)}</option>`)}
      </select>
    </div>
    <div class="field">
      <label for="key-lasts">For how long</label>
      <select id="key-lasts" onChange=${valueTo(setLasts)}>
        ${DURATIONS.map(([seconds, words]) => html`<option key=${words} value=${seconds} selected=${String(seconds) === lasts}>${words}</option>`)}
      </select>
    </div>
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="primary" id="issue" disabled=${busy || label.trim() === '' || !connection}>Issue</button>
    </div>
  <//>`;
}
