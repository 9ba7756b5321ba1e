// The team page: the owners of the organisation, their roles, how they sign in, and their passkeys.
/** @typedef {import('../../answers.ts').Pipeline} Pipeline */
/** @typedef {import('../../answers.ts').Member} Member */
/** @typedef {import('/console/team/roles.js').Role} Role */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { valueTo } from '/console/shell/fields.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Question } from '/console/shell/question.js';
import { Link } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { LinkFor, RemoveMember, RoleOf } from '/console/team/dialogs.js';
import { HandOver } from '/console/team/hand-over.js';
import { ROLE_RIGHTS, ROLES } from '/console/team/roles.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 15_000;
/** Actions that open a dialog first. */
const DIALOGS = { link: LinkFor, role: RoleOf, remove: RemoveMember, agents: HandOver };
/** @typedef {keyof typeof DIALOGS} Doing */

export function TeamPage() {
  const owner = useOwner();
  const may = mayChange(owner);
  const { answer, error, reload } = useLoaded('/owner/owners', INTERVAL_MS);
  const options = useLoaded('/owner/sign-in-options', 600_000).answer;
  const [doing, setDoing] = useState(/** @type {{ what: Doing, member: Member } | undefined} */ (undefined));
  const Ask = doing && DIALOGS[doing.what];
  const members = answer?.owners;
  const admins = members?.filter(({ role }) => role === 'admin').length ?? 0;
  return html`
    <div class="page-head"><h1>Team</h1>
      <p class="small"><${Link} to="/console/passkeys">Your passkeys<//></p></div>
    <div class="team stack">
      <p class="quiet">Who reads, decides and changes things here. ${may ? 'Changes are recorded, and in force at the next request.' : `Your role is ${owner.role}: an admin adds people and changes roles.`} Every approver and admin decides on the calls of every agent, so nothing waits for one person: <a href="/docs/approvals#when-an-owner-is-away" target="_blank" rel="noreferrer">when somebody is away</a>.</p>
      ${error && html`<${Failed} error=${error} again=${reload} />`}
      ${!members && !error && html`<${Loading} />`}
      ${
        members &&
        html`<ul role="list" class="sheet rows" id="team">
          ${members.map(
            (member) =>
              html`<${Row} key=${member.id} member=${member} me=${member.id === owner.id} last=${admins === 1 && member.role === 'admin'} may=${may} others=${members.length > 1} links=${options?.method === 'local'} ask=${(/** @type {Doing} */ what) => setDoing({ what, member })} />`,
          )}
        </ul>`
      }
      ${may && html`<${AddMember} members=${members ?? []} provider=${options?.method === 'oidc' ? options.provider : undefined} added=${reload} />`}
      <${Pipelines} may=${may} />
    </div>
    ${doing && Ask && html`<${Ask} member=${doing.member} members=${members ?? []} onClose=${() => setDoing(undefined)} onDone=${reload} />`}
  `;
}

/** `last`: whether the member is the only admin. `links`: whether people sign in by link. @param {{ member: Member, me: boolean, last: boolean, may: boolean, others: boolean, links: boolean, ask: (what: Doing) => void }} props */
function Row({ member, me, last, may, others, links, ask }) {
  const { id, email, role, origin, role_by_groups: byGroups, passkeys } = member;
  const name = visibleLine(email);
  const of = html`<span class="unseen"> ${name}</span>`;
  return html`<li class="row" data-member=${id} data-role=${role}>
    <div class="what">
      <p class="name"><strong class="theirs">${name}</strong> <span class="badge" data-kind=${role === 'admin' ? 'accent' : ''}>${role}</span> ${me && html`<span class="badge">You</span>`}</p>
      <p class="small quiet">${role === 'viewer' ? 'Reads everything, and changes nothing' : ROLE_RIGHTS[role].replace(/^also/, 'Reads, and')}${origin === 'governance' && ' · named in the governance file'}${byGroups && ' · by groups of the identity provider'}</p>
      <p class="small quiet" data-signed-in>${member.last_sign_in_at ? html`Signed in last <${Ago} at=${member.last_sign_in_at} />` : 'Never signed in'}</p>
      ${passkeys && html`<${Passkeys} passkeys=${passkeys} />`}
      ${may && last && html`<p class="small quiet why">The last admin: nobody could change anything without one. Make somebody else an admin first.</p>`}
      ${may && me && !last && html`<p class="small quiet">You cannot remove yourself: another admin can.</p>`}
    </div>
    ${
      may &&
      html`<div class="buttons">
        ${links && html`<button type="button" class="compact" data-verb="link" onClick=${() => ask('link')}>Sign-in link…${of}</button>`}
        ${others && html`<button type="button" class="compact" data-verb="agents" onClick=${() => ask('agents')}>Hand over agents…${of}</button>`}
        ${!last && html`<button type="button" class="compact" data-verb="role" onClick=${() => ask('role')}>Change role…${of}</button>`}
        ${!last && !me && html`<button type="button" class="compact danger" data-verb="remove" onClick=${() => ask('remove')}>Remove…${of}</button>`}
      </div>`
    }
  </li>`;
}

/** A member's passkeys; only the member can remove them. @param {{ passkeys: NonNullable<Member['passkeys']> }} props */
function Passkeys({ passkeys }) {
  if (passkeys.length === 0) return html`<p class="small quiet">No passkey yet.</p>`;
  return html`<ul role="list" class="small">
    ${passkeys.map(
      ({ device_name, last_used_at, status }) => html`<li>
        Passkey <span class="theirs">${visibleLine(device_name)}</span>, ${status === 'disabled' ? 'disabled' : last_used_at ? html`last used <${Ago} at=${last_used_at} />` : 'never used'}
      </li>`,
    )}
  </ul>`;
}

/** `provider`: the host of the identity provider, if people sign in there. @param {{ members: readonly Member[], provider: string | undefined, added: () => void }} props */
function AddMember({ members, provider, added }) {
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

/** Pipelines that plan or apply governance files: not people, but their files take effect like those of an admin. @param {{ may: boolean }} props */
function Pipelines({ may }) {
  const { answer, error, reload } = useLoaded('/owner/pipelines', INTERVAL_MS);
  const [removing, setRemoving] = useState(/** @type {Pipeline | undefined} */ (undefined));
  if (error && !answer) return html`<${Failed} error=${error} again=${reload} />`;
  if (!answer?.pipelines.length) return null;
  return html`<section aria-labelledby="pipelines-head">
    <h2 id="pipelines-head">Pipelines</h2>
    <p class="quiet small">They plan or apply <a href="/docs/governance#from-a-pipeline" target="_blank" rel="noreferrer">governance files</a> with tokens of their own platform.</p>
    <ul role="list" class="sheet rows" id="pipelines">
      ${answer.pipelines.map(
        (one) => html`<li class="row" key=${one.id} data-pipeline=${one.name}>
          <div class="what">
            <p class="name"><strong class="theirs">${one.name}</strong> <span class="badge" data-kind=${one.role === 'admin' ? 'accent' : ''}>${one.role}</span></p>
            <p class="small quiet">${one.role === 'admin' ? 'Plans, applies and exports' : 'Plans and exports'} as <span class="theirs">${visibleLine(one.subject)}</span> of <span class="theirs">${visibleLine(one.issuer)}</span></p>
            <p class="small quiet">${one.last_used_at ? html`Used last <${Ago} at=${one.last_used_at} />` : 'Never used'}</p>
          </div>
          ${may && html`<div class="buttons"><button type="button" class="compact danger" data-verb="remove" onClick=${() => setRemoving(one)}>Remove…<span class="unseen"> ${one.name}</span></button></div>`}
        </li>`,
      )}
    </ul>
    ${removing && html`<${Remove} pipeline=${removing} onClose=${() => setRemoving(undefined)} onDone=${reload} />`}
  </section>`;
}

/** @param {{ pipeline: Pipeline, onClose: () => void, onDone: () => void }} props */
function Remove({ pipeline: { id, name }, onClose, onDone }) {
  const remove = async () => {
    await ask('DELETE', `/owner/pipelines/${id}`);
    return `The pipeline ${name} is removed.`;
  };
  return html`<${Question} title="Remove this pipeline?" verb="Remove" kind="danger solid" id="remove-pipeline" work=${remove} onClose=${onClose} onDone=${onDone}>
    <p>The next request of <strong class="theirs">${name}</strong> is refused. What it applied stays.</p>
  <//>`;
}
