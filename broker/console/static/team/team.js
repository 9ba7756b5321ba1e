// The team page: the owners of the organisation, their roles, how they sign in, and their passkeys.
/** @typedef {import('../../answers.ts').Member} Member */
import { html, useState } from '/console/html.js';
import { Failed, Loading } from '/console/shell/empty.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { AddMember } from '/console/team/add-member.js';
import { LinkFor, RemoveMember, RoleOf } from '/console/team/dialogs.js';
import { HandOver } from '/console/team/hand-over.js';
import { Pipelines } from '/console/team/pipelines.js';
import { ROLE_RIGHTS } from '/console/team/roles.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 15_000;
/** Actions that open a dialog first. */
const DIALOGS = { link: LinkFor, role: RoleOf, remove: RemoveMember, agents: HandOver };
/** @typedef {keyof typeof DIALOGS} Doing */

export function TeamPage() {
  const owner = useOwner();
  const may = mayChange(owner);
  const { answer, error, reload } = useLoaded('/owner/owners', EVERY_MS);
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
