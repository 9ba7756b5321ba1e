import { html } from '/console/html.js';
import { Dialog } from '/console/shell/dialog.js';

/** @type {[string[], string][]} */
const KEYS = [
  [['j', '↓'], 'next'],
  [['k', '↑'], 'the one before'],
  [['Enter'], 'open, or close'],
  [['x'], 'select, or a whole group'],
  [['Shift x'], 'select all from the last selected one'],
  [['a'], 'approve what is selected, or open (asks for confirmation)'],
  [['d'], 'deny it with a reason, or reject'],
  [['/'], 'search'],
  [['Esc'], 'close, or deselect'],
  [['?'], 'this list'],
];

/**
 * The dialog that lists the keyboard shortcuts of the inbox.
 *
 * @param {{ onClose: () => void }} props
 */
export const Help = ({ onClose }) => html`
  <${Dialog} title="Keys" onClose=${onClose} onSubmit=${onClose}>
    <dl class="keys">
      ${KEYS.map(([keys, what]) => html`<dt>${keys.map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${what}</dd>`)}
    </dl>
    <div class="buttons"><button type="submit" autofocus>Close</button></div>
  <//>
`;
