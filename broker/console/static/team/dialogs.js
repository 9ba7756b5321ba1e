// Confirmation dialogs for changes to a member.
/** @typedef {import('../../answers.ts').Member} Member */
/** @typedef {import('/console/team/roles.js').Role} Role */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { Command } from '/console/shell/command.js';
import { Dialog } from '/console/shell/dialog.js';
import { Question } from '/console/shell/question.js';
import { Reauthenticate, wantsReauthentication } from '/console/shell/reauthenticate.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { ROLE_RIGHTS, ROLES } from '/console/team/roles.js';
import { visibleLine } from '/console/visible.js';

/** @typedef {{ member: Member, onClose: () => void, onDone: () => void }} Props */

/** Creates a sign-in link, which is shown once. @param {Props} props */
export function LinkFor({ member: { id, email }, onClose }) {
  const [url, setUrl] = useState('');
  const { busy, problem, run } = useDoing();
  const make = () => run(async () => setUrl((await ask('POST', `/owner/owners/${id}/link`, {})).url));
  return html`<${Dialog} title="A sign-in link" onClose=${onClose} onSubmit=${url ? onClose : make}>
    <p>It signs in as <strong class="theirs">${visibleLine(email)}</strong>, once, within 15 minutes. The first person who opens it is signed in as that person: send it where only they can read it. The creation of the link is recorded.</p>
    ${url && html`<${Command} text=${url} />`}
    ${problem && wantsReauthentication(problem) ? html`<${Reauthenticate} error=${problem} />` : html`<${Problem} problem=${problem} />`}
    <div class="buttons">
      <button type="button" id="close-link" onClick=${onClose}>${url ? 'Close' : 'Cancel'}</button>
      ${!url && html`<button type="submit" class="primary" id="make-link" disabled=${busy}>Make the link</button>`}
    </div>
  <//>`;
}

/** @param {Props} props */
export function RoleOf({ member: { email, role }, onClose, onDone }) {
  const [chosen, choose] = useState(/** @type {Role} */ (role));
  const name = visibleLine(email);
  const save = async () => {
    await ask('POST', '/owner/owners', { email, role: chosen });
    return `${name} is ${chosen} now.`;
  };
  return html`<${Question} title="Change a role" verb="Save" id="save-role" disabled=${chosen === role} work=${save} onClose=${onClose} onDone=${onDone}>
    <fieldset>
      <legend>What <span class="theirs">${name}</span> may</legend>
      ${ROLES.map(
        (one) => html`<label class="choice" key=${one}>
          <input type="radio" name="role" value=${one} checked=${one === chosen} onChange=${() => choose(one)} />
          <span><strong>${one}</strong> ${ROLE_RIGHTS[one]}</span>
        </label>`,
      )}
    </fieldset>
  <//>`;
}

/** @param {Props} props */
export function RemoveMember({ member: { id, email, origin }, onClose, onDone }) {
  const name = visibleLine(email);
  const remove = async () => {
    await ask('DELETE', `/owner/owners/${id}`);
    return `${name} is removed.`;
  };
  return html`<${Question} title="Remove this person?" verb="Remove" kind="danger solid" id="remove-member" work=${remove} onClose=${onClose} onDone=${onDone}>
    <p><strong class="theirs">${name}</strong> is signed out everywhere at the next request, and their passkeys can no longer decide. Links, invites and bootstrap tokens that they made and nobody has used end. What they did stays on record.</p>
    ${origin === 'governance' && html`<p class="small why">The governance file names them: its next apply brings them back. Take them out of it, too.</p>`}
  <//>`;
}
