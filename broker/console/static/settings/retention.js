// The retention period of the audit. Deleted rows cannot be restored, so a shorter period needs a confirmation.
/** @typedef {import('../../answers.ts').Organisation} Organisation */
/** @typedef {Organisation['retention']} Kept */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';

/** @type {readonly { kind: keyof Kept, title: string, what: string }[]} */
const KINDS = [
  { kind: 'reads_days', title: 'Reads', what: 'allowed calls by GET and HEAD' },
  {
    kind: 'calls_days',
    title: 'Other calls',
    what: 'calls that may change something, and those that were refused or held',
  },
  { kind: 'events_days', title: 'Events', what: 'changes, decisions and what else happened' },
];

const formatDays = (/** @type {number | null} */ days) => (days === null ? 'for ever' : `for ${days} days`);
const asText = (/** @type {number | null} */ days) => (days === null ? '' : String(days));

/** @param {{ kept: Kept, may: boolean, changed: () => unknown }} props */
export function Retention({ kept, may, changed }) {
  // Only what was written: the broker replaces all periods, and another admin may change the others while this page is open.
  const [written, write] = useState(/** @type {Partial<Record<keyof Kept, string>>} */ ({}));
  const textOf = (/** @type {keyof Kept} */ kind) => written[kind] ?? asText(kept[kind]);
  const [isAsking, setIsAsking] = useState(false);
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const daysOf = (/** @type {keyof Kept} */ kind) => (textOf(kind) === '' ? null : Number(textOf(kind)));
  const wanted = {
    reads_days: daysOf('reads_days'),
    calls_days: daysOf('calls_days'),
    events_days: daysOf('events_days'),
  };
  const shorter = KINDS.filter(({ kind }) => {
    const days = wanted[kind];
    return days !== null && days < (kept[kind] ?? Number.POSITIVE_INFINITY);
  });
  const save = () =>
    run(async () => {
      await ask('POST', '/owner/organisation', { retention: wanted });
      announce('How long the audit is kept is changed.', 'good');
      setIsAsking(false);
      await changed();
      write({});
    });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (shorter.length > 0) setIsAsking(true);
    else save();
  };
  return html`<section class="sheet" aria-labelledby="retention">
    <h2 id="retention">How long the audit is kept</h2>
    <ul>${KINDS.map(({ kind, title, what }) => html`<li><strong>${title}</strong> (${what}): ${formatDays(kept[kind])}</li>`)}</ul>
    ${
      may &&
      html`<form onSubmit=${submit}>
        ${KINDS.map(
          ({ kind, title }) => html`<div class="rule">
            <label for=${kind}>${title}: days (31 or more; empty: for ever)</label>
            <input id=${kind} type="number" min="31" max="36500" value=${textOf(kind)} onInput=${valueTo((/** @type {string} */ text) => write({ ...written, [kind]: text }))} />
          </div>`,
        )}
        <div class="buttons"><button type="submit" id="save-retention" disabled=${busy || KINDS.every(({ kind }) => wanted[kind] === kept[kind])}>${shorter.length > 0 ? 'Save…' : 'Save'}</button></div>
      </form>`
    }
    ${
      isAsking &&
      html`<${Dialog} title="Delete what is older?" onClose=${() => setIsAsking(false)} onSubmit=${save}>
        <p>From now on the broker deletes:</p>
        <ul>${shorter.map(({ kind, what }) => html`<li>${what}, when they are older than ${String(wanted[kind])} days</li>`)}</ul>
        <p>Deleted rows and their receipts cannot be restored. The receipt log still proves that they existed.</p>
        <${Problem} problem=${problem} />
        <div class="buttons">
          <button type="button" onClick=${() => setIsAsking(false)}>Cancel</button>
          <button type="submit" class="danger" id="delete-older" disabled=${busy}>Delete what is older</button>
        </div>
      <//>`
    }
    ${!isAsking && html`<${Problem} problem=${problem} />`}
  </section>`;
}
