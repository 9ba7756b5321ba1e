// Dialogs about one passkey.
/** @typedef {import('../../answers.ts').Passkey} Passkey */
/** @typedef {import('/console/html.js').Children} Children */
import { asError, ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { confirmed, withoutPasskeys } from '/console/passkeys/ceremony.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { Reauthenticate, wantsReauthentication } from '/console/shell/reauthenticate.js';
import { useGone } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** @typedef {{ onClose: () => void, onDone: () => void }} Hearers */

/**
 * `work` returns the text to announce afterwards; `byPasskey`: whether a passkey confirms who asks, when the sign-in is too old.
 *
 * @param {{ title: string, verb: string, kind: string, work: (byPasskey: boolean) => Promise<string>, children: Children } & Hearers} props
 */
function Question({ title, verb, kind, work, onClose, onDone, children }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const announce = useAnnounce();
  const gone = useGone();
  const submit = async (byPasskey = false) => {
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const words = await work(byPasskey);
      announce(words, gone.current ? '' : 'good');
      if (!gone.current) onClose();
      onDone();
    } catch (error) {
      if (gone.current) announce(asError(error).message, 'bad');
      else setProblem(asError(error));
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose} onSubmit=${() => submit()}>
    ${children}
    ${
      problem &&
      (wantsReauthentication(problem)
        ? html`<${Reauthenticate} error=${problem} byPasskey=${withoutPasskeys() ? undefined : () => submit(true)} />`
        : html`<p class="notice" data-kind="bad" role="alert">${problem.message}</p>`)
    }
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class=${kind} disabled=${busy}>${verb}</button>
    </div>
  <//>`;
}

/**
 * The dialog that renames a passkey.
 *
 * @param {{ passkey: Passkey } & Hearers} props
 */
export function Rename({ passkey: { id, device_name }, ...more }) {
  const [name, setName] = useState(device_name);
  const rename = async () => {
    const renamed = await ask('POST', `/owner/passkeys/${id}/rename`, { device_name: name.trim() });
    return `It is called “${visibleLine(renamed.device_name)}” now.`;
  };
  return html`<${Question} title="Rename this passkey" verb="Rename" kind="primary" work=${rename} ...${more}>
    <div class="field">
      <label for="name">Name</label>
      <input id="name" value=${name} maxlength="64" required autocomplete="off" autofocus onInput=${valueTo(setName)} />
    </div>
  <//>`;
}

/**
 * The dialog that removes a passkey.
 *
 * @param {{ passkey: Passkey } & Hearers} props
 */
export function Remove({ passkey: { id, device_name }, ...more }) {
  const name = visibleLine(device_name);
  const remove = async (/** @type {boolean} */ byPasskey) => {
    const proof = byPasskey ? { assertion: await confirmed({ purpose: 'remove-passkey', passkey_id: id }) } : undefined;
    await ask('DELETE', `/owner/passkeys/${id}`, proof);
    return `“${name}” is no longer accepted.`;
  };
  return html`<${Question} title="Remove this passkey?" verb="Remove" kind="danger solid" work=${remove} ...${more}>
    <p><strong class="theirs">${name}</strong> is no longer accepted, effective immediately. Its earlier decisions remain in force.</p>
    <p class="quiet small">The device keeps its part of the passkey, which no longer works. You may delete it there, too.</p>
  <//>`;
}
