// Confirmation dialogs for an audit sink.
/** @typedef {import('../../answers.ts').AuditSink} AuditSink */
import { ask } from '/console/api.js';
import { rowsInWords } from '/console/audit-sinks/sink-labels.js';
import { html, useState } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';
import { Question } from '/console/shell/question.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ sink: AuditSink, changed: () => Promise<void>, onClose: () => void }} props */
export function MoveSink({ sink, changed, onClose }) {
  const [text, setText] = useState('');
  const name = visibleLine(sink.name);
  const size = sink.next_index + sink.rows_behind;
  const work = async () => {
    const { rows_behind } = await ask('POST', `/owner/audit-sinks/${sink.id}/settings`, { from: Number(text) });
    await changed();
    return `“${name}” is sent ${rowsInWords(rows_behind)}.`;
  };
  return html`<${Question} title=${`Send to “${name}” from another row`} verb="Send from there" work=${work} onClose=${onClose}>
    <p>The receiver has the rows before row ${sink.next_index}, and the log has ${rowsInWords(size)}. From an earlier row, rows are sent again with the same ids; with a
      later row, the rows before it are never sent.</p>
    <div class="field"><label for="from-row">First row (0 is the oldest)</label>
      <input id="from-row" type="number" required min="0" max=${size} value=${text} onInput=${valueTo(setText)} /></div>
  <//>`;
}

/** @param {{ sink: AuditSink, changed: () => Promise<void>, onClose: () => void }} props */
export function RemoveSink({ sink, changed, onClose }) {
  const name = visibleLine(sink.name);
  const work = async () => {
    await ask('DELETE', `/owner/audit-sinks/${sink.id}`);
    await changed();
    return `The audit is no longer pushed to “${name}”.`;
  };
  return html`<${Question} title="Remove this audit sink?" verb="Remove" kind="danger solid" work=${work} onClose=${onClose}>
    <p>The audit is no longer pushed to <strong class="theirs">${name}</strong>, and its secret is deleted. What was sent stays where it is${sink.rows_behind > 0 ? `; it does not get the ${rowsInWords(sink.rows_behind)} that wait` : ''}.</p>
  <//>`;
}
