/** @typedef {import('../../answers.ts').Member} Member */
/** @typedef {import('/console/team/roles.js').Role} Role */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { valueTo } from '/console/shell/fields.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { ROLE_RIGHTS, ROLES } from '/console/team/roles.js';
import { visibleLine } from '/console/visible.js';

/** `provider`: the host of the identity provider, if people sign in there. @param {{ members: readonly Member[], provider: string | undefined, added: () => void }} props */
export function AddMember({ members, provider, added }) {
  const [email, setEmail] = useState('');
  const [role, setRole] = useState(/** @type {Role} */ ('viewer'));
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const written = email.trim();
  // Adding an existing member would change their role, which has a dialog of its own.
  const known = members.find((member) => member.email === written.toLowerCase());
  const submit = (/** @type {{ currentTarget: HTMLFormElement } & Event} */ event) => {
    const form = event.currentTarget;
    event.preventDefault();
    if (known) return;
    run(async () => {
      await ask('POST', '/owner/owners', { email: written, role });
      announce(`${visibleLine(written)} is added.`, 'good');
      setEmail('');
      setRole('viewer');
      // Clears the validation state, since an untouched empty field is not an error.
      form.reset();
      added();
    });
  };
  return html`<section class="sheet" aria-labelledby="add-member"><form class="add" id="add-form" onSubmit=${submit}>
    <h2 id="add-member">Add somebody</h2>
    <div class="fields">
      <div class="field">
        <label for="member-email">E-mail address</label>
        <input id="member-email" type="email" required maxlength="254" autocomplete="off" placeholder="ann@acme.example" value=${email} onInput=${valueTo(setEmail)} />
      </div>
      <div class="field">
        <label for="member-role">Role</label>
        <select id="member-role" onChange=${valueTo((value) => setRole(/** @type {Role} */ (value)))}>
          ${ROLES.map((one) => html`<option key=${one} value=${one} selected=${one === role}>${one}: ${ROLE_RIGHTS[one]}</option>`)}
        </select>
      </div>
    </div>
    <p class="small quiet">${provider ? `They sign in at ${provider} with this address.` : 'Nothing is sent: copy them a sign-in link afterwards. Once they have a passkey, they need no other link.'}</p>
    ${known && html`<p class="small why" role="status">${visibleLine(known.email)} is a member already: change the role above.</p>`}
    <${Problem} problem=${problem} />
    <div class="buttons"><button type="submit" class="primary" id="add" disabled=${busy || written === '' || known !== undefined}>Add</button></div>
  </form></section>`;
}
