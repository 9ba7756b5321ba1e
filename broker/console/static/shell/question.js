// Dialogs that run an action, and the one that shows a generated key once.
/** @typedef {import('/console/html.js').Children} Children */
import { html } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Command } from '/console/shell/command.js';
import { Dialog } from '/console/shell/dialog.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/**
 * `work` returns the text to announce afterwards; when it returns undefined, the dialog stays open, such as after a concurrent change.
 *
 * @param {{ title: string, verb: string, kind?: string, work: () => Promise<string | undefined>, onClose: () => void, children: Children }} props
 */
export function Question({ title, verb, kind = 'primary', work, onClose, children }) {
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const submit = () =>
    run(async () => {
      const words = await work();
      if (words === undefined) return;
      announce(words, 'good');
      onClose();
    });
  return html`<${Dialog} title=${title} onClose=${onClose} onSubmit=${submit}>
    ${children}
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class=${kind} id="do-it" disabled=${busy}>${verb}</button>
    </div>
  <//>`;
}

/** Shows a key that the broker generated, once. @param {{ name: string, secret: string, onClose: () => void }} props */
export function MadeSecret({ name, secret, onClose }) {
  return html`<${Dialog} title="Keep this key" onClose=${onClose} onSubmit=${onClose}>
    <p>The receiver of the webhooks of <strong class="theirs">${visibleLine(name)}</strong> verifies them with this key. It is shown only once.</p>
    <${Command} text=${secret} />
    <div class="buttons"><button type="submit" class="primary" id="kept">I have kept it</button></div>
  <//>`;
}
