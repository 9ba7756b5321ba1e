// Dialogs that run an action, and the one that shows a generated key once.
/** @typedef {import('/console/html.js').Children} Children */
import { html } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Command } from '/console/shell/command.js';
import { Dialog } from '/console/shell/dialog.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/**
 * `work` returns the text to announce afterwards, with its kind unless that is good; when it returns undefined, the dialog stays open, such as after
 * a concurrent change. `onDone` is called after each attempt, also after one that failed. `kind` and `id`: of the button that submits, which
 * `disabled` disables.
 *
 * @param {{
 *   title: string, verb: string, kind?: string, id?: string, disabled?: boolean,
 *   work: () => Promise<string | readonly string[] | undefined>, onClose: () => void, onDone?: () => void, children: Children,
 * }} props
 */
export function Question({
  title,
  verb,
  kind = 'primary',
  id = 'do-it',
  disabled = false,
  work,
  onClose,
  onDone,
  children,
}) {
  const { busy, problem, gone, run } = useDoing();
  const announce = useAnnounce();
  const submit = async () => {
    await run(async () => {
      const said = await work();
      if (said === undefined) return;
      const [words = '', tone = 'good'] = typeof said === 'string' ? [said] : said;
      // Nothing else on the screen tells a person who closed the dialog that the action was done.
      announce(words, gone.current && tone === 'good' ? '' : tone);
      if (!gone.current) onClose();
    });
    onDone?.();
  };
  return html`<${Dialog} title=${title} onClose=${onClose} onSubmit=${submit}>
    ${children}
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class=${kind} id=${id} disabled=${busy || disabled}>${verb}</button>
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
