// Questions about one passkey.
import { ask } from '/console/api.js';
import { html, useEffect, useRef, useState } from '/console/html.js';
import { visibleLine } from '/console/visible.js';

/** `work` answers what to say afterwards. `done` hears it, or nothing when it was closed. */
function Question({ title, children, verb, kind, work, done }) {
  const dialog = useRef();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState();
  useEffect(() => dialog.current.showModal(), []);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const text = await work(new FormData(event.target));
      dialog.current.close();
      done(text);
    } catch (error) {
      setProblem(error.message);
      setBusy(false);
    }
  };
  return html`<dialog ref=${dialog} aria-labelledby="question" onClose=${() => done()}>
    <form class="question" onSubmit=${submit}>
      <h2 id="question">${title}</h2>
      ${children}
      <p class="problem small" data-kind="bad" role="status">${problem}</p>
      <div class="buttons">
        <button type="button" onClick=${() => dialog.current.close()}>Cancel</button>
        <button type="submit" class=${kind} disabled=${busy}>${verb}</button>
      </div>
    </form>
  </dialog>`;
}

/** Asks for another name. */
export const Rename = ({
  passkey: { id, device_name },
  done,
}) => html`<${Question} title="Rename this passkey" verb="Rename" kind="primary" done=${done}
  work=${async (form) => {
    const renamed = await ask('POST', `/owner/passkeys/${id}/rename`, { device_name: form.get('name').trim() });
    return `It is called “${visibleLine(renamed.device_name)}” now.`;
  }}>
  <div class="field">
    <label for="name">Name</label>
    <input id="name" name="name" value=${device_name} maxlength="64" required autocomplete="off" autofocus />
  </div>
<//>`;

/** Asks whether it shall go. */
export const Remove = ({
  passkey: { id, device_name },
  done,
}) => html`<${Question} title="Remove this passkey?" verb="Remove" kind="danger" done=${done}
  work=${async () => {
    await ask('DELETE', `/owner/passkeys/${id}`);
    return `“${visibleLine(device_name)}” approves nothing any more.`;
  }}>
  <p><strong class="theirs">${visibleLine(device_name)}</strong> will not approve anything any more, at once. What it approved
  before stands.</p>
  <p class="quiet small">The device keeps its half of it, which is good for nothing then. You may delete it there, too.</p>
<//>`;
