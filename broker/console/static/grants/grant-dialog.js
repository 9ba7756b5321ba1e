// The dialog that creates or changes a grant; it lists the changes before they are saved.
/** @typedef {import('../../answers.ts').ChangedGrant} ChangedGrant */
/** @typedef {import('../../answers.ts').OwnedGrant} OwnedGrant */
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
/** @typedef {import('/console/grants/terms.js').Terms} Terms */
import { ask } from '/console/api.js';
import { grantMeant } from '/console/grants/meant.js';
import { bodyOf, describeChanges, termsOf } from '/console/grants/terms.js';
import { TermsFields } from '/console/grants/terms-fields.js';
import { html, useId, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { exactly } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const SLOW_INTERVAL_MS = 60_000;

/** `grant`: the grant to change; undefined: a new grant, on the platform `wanted` if given. @param {{ agent: WholeAgent, wanted?: string | undefined, grant: OwnedGrant | undefined, grants: readonly OwnedGrant[], onClose: () => void, onDone: () => void }} props */
export function GrantDialog({ agent, wanted, grant, grants, onClose, onDone }) {
  const id = useId();
  const { answer, error, reload } = useLoaded('/owner/platforms', SLOW_INTERVAL_MS);
  const [chosen, choose] = useState(grant?.platform ?? wanted ?? '');
  const [connection, setConnection] = useState(grant?.connection?.label ?? '');
  const platforms = answer?.platforms ?? [];
  const platform = chosen || (platforms.length === 1 ? (platforms[0]?.platform_id ?? '') : '');
  const connections = platforms.find(({ platform_id }) => platform_id === platform)?.connections ?? [];
  // An existing grant on this connection is changed instead of creating another one.
  const changed = grant ?? grantMeant(grants, platform, connection, connections);
  return html`<${Dialog} title=${grant ? `What ${visibleLine(agent.name)} may do on ${visibleLine(grant.platform)}` : `Grant ${visibleLine(agent.name)} something`} onClose=${onClose}>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!answer && !error && html`<${Loading} />`}
    ${answer && platforms.length === 0 && html`<p>There is no platform yet. <${Link} to="/console/connections">Connect one first<//>.</p>`}
    ${
      !grant &&
      platforms.length > 0 &&
      html`<div class="field">
        <label for="${id}-platform">Platform</label>
        <select id="${id}-platform" data-field="platform" onChange=${valueTo((value) => {
          choose(value);
          setConnection('');
        })}>
          ${platforms.length > 1 && html`<option value="" selected=${platform === ''}>Choose one</option>`}
          ${platforms.map(({ platform_id, name }) => html`<option key=${platform_id} value=${platform_id} selected=${platform === platform_id}>${visibleLine(name)}</option>`)}
        </select>
      </div>`
    }
    ${
      !grant &&
      connections.length > 1 &&
      html`<div class="field">
        <label for="${id}-connection">Connection</label>
        <select id="${id}-connection" data-field="connection" onChange=${valueTo(setConnection)}>
          <option value="">The one that calls use when they name none</option>
          ${connections.map(({ id: one, label }) => html`<option key=${one} value=${label} selected=${connection === label}>${visibleLine(label)}</option>`)}
        </select>
      </div>`
    }
    ${changed && !grant && html`<p class="notice" data-kind="wait">It has a grant there already: this changes it.</p>`}
    ${
      platform &&
      (grant || answer) &&
      html`<${Editor} key=${`${platform} ${connection}`} platformId=${platform} ...${{ agent, connection, onClose, onDone }} grant=${changed} />`
    }
    ${!platform && html`<div class="buttons"><button type="button" onClick=${onClose}>Cancel</button></div>`}
  <//>`;
}

/** @param {{ agent: WholeAgent, platformId: string, connection: string, grant: OwnedGrant | undefined, onClose: () => void, onDone: () => void }} props */
function Editor({ agent, platformId, connection, grant, onClose, onDone }) {
  const {
    answer: platform,
    error,
    reload,
  } = useLoaded(/** @type {const} */ (`/owner/platforms/${platformId}`), SLOW_INTERVAL_MS);
  // The grant as it was when the dialog opened: the fields begin with it, while the page goes on reading what it is now.
  const [seen] = useState(grant);
  const [terms, setTerms] = useState(() => termsOf(seen));
  const [saved, setSaved] = useState(/** @type {ChangedGrant | undefined} */ (undefined));
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  if (!platform) return error ? html`<${Failed} error=${error} again=${reload} />` : html`<${Loading} />`;
  const changes = describeChanges(seen, terms);
  const over = !busy && grant?.version !== seen?.version;
  const none = terms.scopes.length === 0;
  const save = () =>
    run(async () => {
      const body = { ...bodyOf(seen, terms), ...(connection && { connection }), version: seen?.version ?? null };
      const answer = await ask(
        'POST',
        /** @type {const} */ (`/owner/agents/${agent.agent_id}/grants/${platformId}`),
        body,
      );
      announce(`What ${visibleLine(agent.name)} may do on ${visibleLine(platform.name)} is changed.`, 'good');
      onDone();
      if ('grant' in answer && answer.warnings.length + answer.next_steps.length > 0) setSaved(answer);
      else onClose();
    });
  if (saved)
    return html`<div class="notice" data-kind="wait" role="status" id="next-steps"><ul class="says">
        ${saved.warnings.map((words) => html`<li class="theirs" key=${words}>${visibleLine(words)}</li>`)}
        ${saved.next_steps.map(({ detail }) => html`<li class="theirs" key=${detail}>${visibleLine(detail)}</li>`)}
      </ul></div>
      <p>It is saved.</p>
      <div class="buttons"><button type="button" class="primary" onClick=${onClose}>Close</button></div>`;
  const ends =
    seen && !seen.expired ? (seen.expires_at ? `until ${exactly(seen.expires_at)}` : 'does not expire') : undefined;
  return html`
    <${TermsFields} platform=${platform} terms=${terms} ends=${ends} change=${(/** @type {Partial<Terms>} */ more) => setTerms({ ...terms, ...more })} />
    <div class="would" role="status" id="would">
      ${none && html`<p class="quiet">Choose at least one scope.</p>`}
      ${!none && changes.length === 0 && html`<p class="quiet">Nothing would change.</p>`}
      ${!none && changes.length > 0 && html`<p><strong>From its next call on:</strong></p><ul class="says">${changes.map((words) => html`<li class="theirs" key=${words}>${words}</li>`)}</ul>`}
    </div>
    <${Problem} problem=${problem} />
    ${over && html`<p class="notice" data-kind="wait" role="status">Somebody changed this grant meanwhile. Close this and open it again to change what it is now.</p>`}
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="primary" id="save-grant" disabled=${busy || none || over || changes.length === 0} onClick=${save}>${grant ? 'Save' : 'Grant'}</button>
    </div>
  `;
}
