// The review of a store that was restored from a backup: what may act in it as of the backup, and allowing calls again.
/** @typedef {import('../../answers.ts').RestoredReview} RestoredReview */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { pageOf } from '/console/shell/agent-name.js';
import { useAnnounce } from '/console/shell/announce.js';
import { valueTo } from '/console/shell/fields.js';
import { Empty, Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { Ago, exactly } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 15_000;

export function RestoredPage() {
  const organisation = useLoaded('/owner/organisation', INTERVAL_MS);
  const { answer, error, reload } = organisation;
  const owner = useOwner();
  return html`
    <div class="page-head"><h1>Restored</h1></div>
    <div class="restored stack">
      ${error && html`<${Failed} error=${error} again=${reload} />`}
      ${!answer && !error && html`<${Loading} />`}
      ${answer && !answer.restored && html`<${Empty} title="Nothing waits for a review"><p>After a backup is restored, everything in it that may act is listed here.</p><//>`}
      ${answer?.restored && !mayChange(owner) && html`<p id="ask-admin">Your role is ${owner.role}: an admin reviews it and lets calls go on.</p>`}
      ${answer?.restored && mayChange(owner) && html`<${Review} key=${answer.restored.at} onDone=${reload} />`}
    </div>
  `;
}

/** @param {{ onDone: () => void }} props */
function Review({ onDone }) {
  const { answer, error, reload } = useLoaded('/owner/restored', INTERVAL_MS);
  // What is there stays when a later read fails, with the note that is being written.
  if (!answer?.restored) return error ? html`<${Failed} error=${error} again=${reload} />` : html`<${Loading} />`;
  const { restored, agents, owners, pipelines, workloads, passkeys, static_keys: keys, person_tokens: tokens } = answer;
  return html`
    <p>${restored.backup_made_at ? html`The backup is of <strong>${exactly(restored.backup_made_at)}</strong>. ` : 'When the copy was made is not known. '}Later changes are missing: agents that were
      suspended or revoked since then have their earlier status, and grants, owners, pipelines and passkeys that were removed are back.</p>
    <p class="quiet">${endedWords(restored.ended)}</p>
    <${List} title="Agents" id="restored-agents" items=${agents} row=${agentRow} />
    <${List} title="Owners" id="restored-owners" items=${owners} row=${ownerRow} />
    <${List} title="Pipelines" id="restored-pipelines" items=${pipelines} row=${pipelineRow} />
    <${List} title="Workloads of agents" id="restored-workloads" items=${workloads} row=${workloadRow} />
    <${List} title="Passkeys" id="restored-passkeys" items=${passkeys} row=${passkeyRow} />
    <${List} title="Static keys" id="restored-keys" items=${keys} row=${keyRow} />
    <${List} title="Tokens of people" id="restored-tokens" items=${tokens} row=${tokenRow} />
    <${End} restoredAt=${restored.at} onDone=${onDone} />
  `;
}

/** @param {{ restoredAt: string, onDone: () => void }} props */
function End({ restoredAt, onDone }) {
  const announce = useAnnounce();
  const { busy, problem, run } = useDoing();
  const [reason, setReason] = useState('');
  const end = (/** @type {Event} */ event) => {
    event.preventDefault();
    return run(async () => {
      const words = reason.trim() ? { reason: reason.trim() } : {};
      await ask('POST', '/owner/restored/end', { restored_at: restoredAt, ...words });
      announce('Reviewed. Calls go on.', 'good');
      onDone();
    });
  };
  return html`<form class="sheet pad stack" onSubmit=${end}>
    <h2>Let calls go on</h2>
    <p>First suspend, revoke or remove on their own pages what was suspended, revoked or removed since. From the very next call on, everything above may act again.</p>
    <div class="field">
      <label for="restored-why">Note <span class="quiet">(optional)</span></label>
      <input id="restored-why" maxlength="500" autocomplete="off" value=${reason} onInput=${valueTo(setReason)} />
      <p class="hint">It stays on record.</p>
    </div>
    <${Problem} problem=${problem} />
    <div class="buttons"><button type="submit" class="primary" id="end-review" disabled=${busy}>I have reviewed it: let calls go on</button></div>
  </form>`;
}

/**
 * @template T
 * @param {{ title: string, id: string, items: readonly T[], row: (item: T) => unknown }} props
 */
function List({ title, id, items, row }) {
  return html`<section>
    <h2>${title} <span class="quiet">(${items.length})</span></h2>
    ${items.length > 0 && html`<ul role="list" class="sheet rows" id=${id}>${items.map((item) => html`<li class="row">${row(item)}</li>`)}</ul>`}
  </section>`;
}

const agentRow = (
  /** @type {RestoredReview['agents'][number]} */ { agent_id, name, status, owner, is_child, grants },
) => html`
  <p><${Link} to=${pageOf(agent_id)}><strong class="theirs">${visibleLine(name)}</strong><//> <span class="badge" data-kind=${status === 'active' ? 'good' : ''}>${status}</span>
    <span class="quiet small theirs"> ${is_child ? 'child' : 'agent'}${owner && ` of ${visibleLine(owner)}`}</span></p>
  ${grants.map(({ platform, scopes, require_approval, expires_at }) => html`<p class="small theirs">${visibleLine(platform)}: <code>${visibleLine(scopes.join(' '))}</code>${require_approval && ', each call held'}${expires_at && `, until ${exactly(expires_at)}`}</p>`)}
`;
const ownerRow = (/** @type {RestoredReview['owners'][number]} */ { email, role }) =>
  html`<p><span class="theirs">${visibleLine(email)}</span> <span class="quiet small">${role}</span></p>`;
const pipelineRow = (/** @type {RestoredReview['pipelines'][number]} */ { name, role, issuer, subject }) =>
  html`<p><span class="theirs">${name}</span> <span class="quiet small theirs">${role}, ${visibleLine(subject)} of ${visibleLine(issuer)}</span></p>`;
const workloadRow = (/** @type {RestoredReview['workloads'][number]} */ { agent_id, issuer, subject }) =>
  html`<p><${Link} to=${pageOf(agent_id)}>${agent_id}<//> <span class="quiet small theirs">${visibleLine(subject)} of ${visibleLine(issuer)}</span></p>`;
const passkeyRow = (
  /** @type {RestoredReview['passkeys'][number]} */ { owner, device_name, status, last_used_at, counter_unknown },
) =>
  html`<p><span class="theirs">${visibleLine(device_name)}</span> <span class="quiet small theirs">${status}${counter_unknown && ', with its counter from the backup'}${owner && `, of ${visibleLine(owner)}`}${last_used_at && html`, used <${Ago} at=${last_used_at} />`}</span></p>`;
const keyRow = (/** @type {RestoredReview['static_keys'][number]} */ { agent_id, label, expires_at }) =>
  html`<p><span class="theirs">${visibleLine(label)}</span> <span class="quiet small">of <${Link} to=${pageOf(agent_id)}>${agent_id}<//>, until ${exactly(expires_at)}</span></p>`;
const tokenRow = (
  /** @type {RestoredReview['person_tokens'][number]} */ { person_id, platform, standing, status, last_used_at },
) =>
  html`<p><code>${person_id}</code> <span class="quiet small theirs">${visibleLine(platform)}, ${standing === 'kept' ? status : standing}${last_used_at && html`, used <${Ago} at=${last_used_at} />`}</span></p>`;

/** Describes the waiting items that the restore ended. @param {NonNullable<RestoredReview['restored']>['ended']} ended */
function endedWords(ended) {
  const parts = Object.entries(ended).filter(([, count]) => count > 0);
  if (parts.length === 0) return 'Nothing waited in it. Sessions, and links and tokens for one use, have ended.';
  const words = parts.map(([what, count]) => `${what.replaceAll('_', ' ')}: ${count}`).join(', ');
  return `Ended, because it may have been decided since: ${words}. So have sessions, and links and tokens for one use.`;
}
