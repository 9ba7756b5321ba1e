// Questions about a device or a channel.
/** @typedef {import('../../answers.ts').Channel} Channel */
/** @typedef {import('../../answers.ts').PushDevice} PushDevice */
/** @typedef {import('/console/html.js').Children} Children */
import { html, useState } from '/console/html.js';
import { RulesFields, rulesOf, writtenOf } from '/console/notices/rules-fields.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Command } from '/console/shell/command.js';
import { Dialog } from '/console/shell/dialog.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/**
 * `work` answers what to say afterwards; where it answers nothing, the dialog stays as somebody else has it.
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

/** @param {{ device: PushDevice, remove: () => Promise<void>, onClose: () => void }} props */
export function RemoveDevice({ device, remove, onClose }) {
  const name = visibleLine(device.device_name);
  const work = async () => {
    await remove();
    return `“${name}” is told nothing any more.`;
  };
  return html`<${Question} title="Remove this device?" verb="Remove" kind="danger solid" work=${work} onClose=${onClose}>
    <p><strong class="theirs">${name}</strong> is told nothing any more. It can be turned on again from that device.</p>
  <//>`;
}

/** @param {{ title: string, rules: Channel['rules'], save: (rules: Channel['rules']) => Promise<void>, onClose: () => void }} props */
export function RulesDialog({ title, rules, save, onClose }) {
  const [written, write] = useState(() => writtenOf(rules));
  const work = async () => {
    await save(rulesOf(written));
    return 'Saved.';
  };
  return html`<${Question} title=${title} verb="Save" work=${work} onClose=${onClose}><${RulesFields} written=${written} write=${write} /><//>`;
}

/** @param {{ channel: Channel, remove: () => Promise<void>, onClose: () => void }} props */
export function RemoveChannel({ channel, remove, onClose }) {
  const name = visibleLine(channel.name);
  const work = async () => {
    await remove();
    return `The channel “${name}” is removed.`;
  };
  return html`<${Question} title="Remove this channel?" verb="Remove" kind="danger solid" work=${work} onClose=${onClose}>
    <p>Nothing is told on <strong class="theirs">${name}</strong> any more, and its secret is deleted.${channel.origin === 'governance' ? ' The next apply of the governance file brings it back, unless it is removed there.' : ''}</p>
  <//>`;
}

/** The key that the broker made, which is shown this once. @param {{ name: string, secret: string, onClose: () => void }} props */
export function MadeSecret({ name, secret, onClose }) {
  return html`<${Dialog} title="Keep this key" onClose=${onClose} onSubmit=${onClose}>
    <p>Whoever receives the webhooks of <strong class="theirs">${visibleLine(name)}</strong> verifies them with it. It is shown this once.</p>
    <${Command} text=${secret} />
    <div class="buttons"><button type="submit" class="primary" id="kept">I have kept it</button></div>
  <//>`;
}
