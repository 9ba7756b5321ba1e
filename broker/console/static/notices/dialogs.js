// Dialogs about a device or a channel.
/** @typedef {import('../../answers.ts').Channel} Channel */
/** @typedef {import('../../answers.ts').PushDevice} PushDevice */
import { html, useState } from '/console/html.js';
import { RulesFields, rulesOf, writtenOf } from '/console/notices/rules-fields.js';
import { Question } from '/console/shell/question.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ device: PushDevice, remove: () => Promise<void>, onClose: () => void }} props */
export function RemoveDevice({ device, remove, onClose }) {
  const name = visibleLine(device.device_name);
  const work = async () => {
    await remove();
    return `“${name}” gets no further notices.`;
  };
  return html`<${Question} title="Remove this device?" verb="Remove" kind="danger solid" work=${work} onClose=${onClose}>
    <p><strong class="theirs">${name}</strong> gets no further notices. They can be turned on again from that device.</p>
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
    <p>No more notices are sent to <strong class="theirs">${name}</strong>, and its secret is deleted.${channel.origin === 'governance' ? ' The next apply of the governance file brings it back, unless it is removed there.' : ''}</p>
  <//>`;
}
