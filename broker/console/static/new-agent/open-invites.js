/** @typedef {import('../../answers.ts').Invite} Invite */
import { ask } from '/console/api.js';
import { html } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Ago, exactly } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** The list of unused invites; renders nothing when there are none. @param {{ invites: readonly Invite[], may: boolean, changed: () => void }} props */
export function OpenInvites({ invites, may, changed }) {
  const { problem, run } = useDoing();
  const announce = useAnnounce();
  if (invites.length === 0) return null;
  const revoke = (/** @type {Invite} */ { id, agent_name }) =>
    run(async () => {
      await ask('DELETE', /** @type {const} */ (`/owner/invites/${id}`));
      announce(`The invite for ${visibleLine(agent_name)} is revoked.`, 'good');
      changed();
    });
  return html`<section aria-labelledby="open-invites">
    <div class="section-head"><h2 id="open-invites">Open invites</h2></div>
    <${Problem} problem=${problem} />
    <ul role="list" class="sheet rows">
      ${invites.map(
        (invite) => html`<li class="row line-row" key=${invite.id} data-invite=${invite.id}>
          <div class="what">
            <p><strong class="theirs">${visibleLine(invite.agent_name)}</strong></p>
            <p class="small quiet">made <${Ago} at=${invite.created_at} /> · until ${exactly(invite.expires_at)}${invite.grants.length > 0 && html` · on <span class="theirs">${invite.grants.map(({ platformId }) => visibleLine(platformId)).join(', ')}</span>`}</p>
          </div>
          ${may && html`<button type="button" class="compact danger" onClick=${() => revoke(invite)}>Revoke<span class="unseen"> the invite for ${invite.agent_name}</span></button>`}
        </li>`,
      )}
    </ul>
  </section>`;
}
