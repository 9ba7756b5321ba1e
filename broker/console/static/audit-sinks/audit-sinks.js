// The page of audit sinks: where the audit is pushed to, how far each receiver is behind, and adding, changing, testing and removing sinks.
/** @typedef {import('../../answers.ts').AuditSink} AuditSink */
import { ask } from '/console/api.js';
import { SinkForm } from '/console/audit-sinks/sink-form.js';
import { badgeOf, formatRows, kindName, placeOf, stateOf } from '/console/audit-sinks/sink-labels.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { valueTo } from '/console/shell/fields.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { MadeSecret, Question } from '/console/shell/question.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 5_000;

export function AuditSinksPage() {
  const owner = useOwner();
  return html`
    <div class="page-head"><h1>Audit sinks</h1></div>
    <div class="audit-sinks stack">
      <p class="quiet">All audit rows of this organisation (calls, decisions and changes) are sent to each sink as they are recorded: in order, at least
        once, and without gaps after a receiver was unavailable.</p>
      ${
        mayChange(owner)
          ? html`<${Sinks} />`
          : html`<p id="not-admin">Your role is ${owner.role}: an admin sees and changes them.</p>`
      }
    </div>
  `;
}

/** @typedef {{ what: 'add' } | { what: 'change' | 'move' | 'remove', sink: AuditSink } | { what: 'made', name: string, secret: string }} Asked */

function Sinks() {
  const { answer, error, reload } = useLoaded('/owner/audit-sinks', INTERVAL_MS);
  const kinds = useLoaded('/owner/audit-sink-kinds', 3_600_000).answer?.kinds;
  const [asked, setAsked] = useState(/** @type {Asked | undefined} */ (undefined));
  const sinks = answer?.sinks;
  // A dialog's close event fires a moment later: a dialog that was opened meanwhile must stay open.
  const close = () => setAsked((now) => (now === asked ? undefined : now));
  const made = (/** @type {string} */ name, /** @type {string} */ secret) => setAsked({ what: 'made', name, secret });
  return html`<section class="sheet" aria-label="Audit sinks">
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!sinks && !error && html`<${Loading} />`}
    ${sinks?.length === 0 && html`<p id="no-sinks">The audit is pushed nowhere. A webhook, a collector of OpenTelemetry or S3-compatible storage can receive it.</p>`}
    ${
      sinks &&
      sinks.length > 0 &&
      html`<ul role="list" class="rows" id="sinks">
        ${sinks.map((sink) => html`<${Row} key=${sink.id} sink=${sink} changed=${reload} ask=${(/** @type {'change' | 'move' | 'remove'} */ what) => setAsked({ what, sink })} />`)}
      </ul>`
    }
    ${kinds && html`<div class="buttons"><button type="button" id="add-sink" onClick=${() => setAsked({ what: 'add' })}>Add an audit sink…</button></div>`}
    ${kinds && asked?.what === 'add' && html`<${SinkForm} kinds=${kinds} made=${made} changed=${reload} onClose=${close} />`}
    ${kinds && asked?.what === 'change' && html`<${SinkForm} kinds=${kinds} sink=${asked.sink} made=${made} changed=${reload} onClose=${close} />`}
    ${asked?.what === 'move' && html`<${MoveSink} sink=${asked.sink} changed=${reload} onClose=${close} />`}
    ${asked?.what === 'remove' && html`<${RemoveSink} sink=${asked.sink} changed=${reload} onClose=${close} />`}
    ${asked?.what === 'made' && html`<${MadeSecret} name=${asked.name} secret=${asked.secret} onClose=${close} />`}
  </section>`;
}

/** @param {{ sink: AuditSink, changed: () => Promise<void>, ask: (what: 'change' | 'move' | 'remove') => void }} props */
function Row({ sink, changed, ask: question }) {
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const name = visibleLine(sink.name);
  const badge = badgeOf(sink);
  const isPaused = sink.status === 'paused';
  const test = () =>
    run(async () => {
      const { ok, detail } = await ask('POST', `/owner/audit-sinks/${sink.id}/test`, {});
      announce(visibleLine(detail), ok ? 'good' : 'bad');
    });
  const turn = () =>
    run(async () => {
      await ask('POST', `/owner/audit-sinks/${sink.id}/settings`, { status: isPaused ? 'active' : 'paused' });
      announce(
        isPaused ? `“${name}” is resumed.` : `Nothing is sent to “${name}” until it is resumed; nothing is lost.`,
        'good',
      );
      await changed();
    });
  return html`<li class="row" data-sink=${sink.name}>
    <div class="what">
      <p class="name"><strong class="theirs">${name}</strong> <span class="badge">${kindName(sink.kind)}</span> <span class="badge state" data-kind=${badge.kind}>${badge.words}</span></p>
      <p class="small theirs">${placeOf(sink)}</p>
      <p class="small quiet theirs how-far">${stateOf(sink)}</p>
      <${Problem} problem=${problem} />
    </div>
    <div class="buttons">
      <button type="button" class="compact test" disabled=${busy} onClick=${test}>Test<span class="unseen"> ${name}</span></button>
      <button type="button" class="compact turn" disabled=${busy} onClick=${turn}>${isPaused ? 'Resume' : 'Pause'}<span class="unseen"> ${name}</span></button>
      <button type="button" class="compact move" onClick=${() => question('move')}>Send again from…<span class="unseen"> ${name}</span></button>
      <button type="button" class="compact change" onClick=${() => question('change')}>Change…<span class="unseen"> ${name}</span></button>
      <button type="button" class="compact danger remove" onClick=${() => question('remove')}>Remove…<span class="unseen"> ${name}</span></button>
    </div>
  </li>`;
}

/** Confirmation dialogs for an audit sink. @param {{ sink: AuditSink, changed: () => Promise<void>, onClose: () => void }} props */
function MoveSink({ sink, changed, onClose }) {
  const [text, setText] = useState('');
  const name = visibleLine(sink.name);
  const size = sink.next_index + sink.rows_behind;
  const work = async () => {
    const { rows_behind } = await ask('POST', `/owner/audit-sinks/${sink.id}/settings`, { from: Number(text) });
    await changed();
    return `“${name}” is sent ${formatRows(rows_behind)}.`;
  };
  return html`<${Question} title=${`Send to “${name}” from another row`} verb="Send from there" work=${work} onClose=${onClose}>
    <p>The receiver has the rows before row ${sink.next_index}, and the log has ${formatRows(size)}. From an earlier row, rows are sent again with the same ids; with a
      later row, the rows before it are never sent.</p>
    <div class="field"><label for="from-row">First row (0 is the oldest)</label>
      <input id="from-row" type="number" required min="0" max=${size} value=${text} onInput=${valueTo(setText)} /></div>
  <//>`;
}

/** @param {{ sink: AuditSink, changed: () => Promise<void>, onClose: () => void }} props */
function RemoveSink({ sink, changed, onClose }) {
  const name = visibleLine(sink.name);
  const work = async () => {
    await ask('DELETE', `/owner/audit-sinks/${sink.id}`);
    await changed();
    return `The audit is no longer pushed to “${name}”.`;
  };
  return html`<${Question} title="Remove this audit sink?" verb="Remove" kind="danger solid" work=${work} onClose=${onClose}>
    <p>The audit is no longer pushed to <strong class="theirs">${name}</strong>, and its secret is deleted. What was sent stays where it is${sink.rows_behind > 0 ? `; it does not get the ${formatRows(sink.rows_behind)} that wait` : ''}.</p>
  <//>`;
}
