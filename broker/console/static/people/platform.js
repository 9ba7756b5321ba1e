// The people of one platform: counts by state, accounts to confirm, and ending their tokens. Never their identities.
/** @typedef {import('../../answers.ts').PeopleOfPlatform} PeopleOfPlatform */
/** @typedef {import('../../answers.ts').PersonTokens} PersonTokens */
/** @typedef {import('/console/people/dialogs.js').Ending} Ending */
import { ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { checkedTo, openTo, valueTo } from '/console/shell/fields.js';
import { Failed, Loading } from '/console/shell/loaded.js';
import { Pager, usePage } from '/console/shell/pager.js';
import { Ago } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/**
 * `waiting`: those that wait to be confirmed. `changes`: how many changes were made on this page. `may`: whether the viewer may change it.
 *
 * @param {{ platform: PeopleOfPlatform, waiting: PersonTokens[], changes: number, may: boolean, confirm: (one: PersonTokens) => void, end: (ending: Ending) => void, changed: () => void }} props
 */
export function PlatformPeople({ platform, waiting, changes, may, confirm, end, changed }) {
  const { platform_id: id, per_person: setting, unconfirmed, active, reauth_needed: over, connections } = platform;
  const name = visibleLine(platform.name);
  const given = active + over;
  const [open, setOpen] = useState(false);
  return html`<section class="sheet" aria-labelledby=${`people-of-${id}`} data-platform=${id}>
    <h2 id=${`people-of-${id}`}><span class="theirs">${name}</span> <span class="badge" data-kind=${setting?.enabled ? 'good' : ''}>${setting?.enabled ? 'One token per person' : 'Off'}</span></h2>
    <p class="counts">${counted(unconfirmed, 'waits', 'wait')} to be confirmed · ${active} in use · ${over} ended by the platform</p>
    ${waiting.length > 0 && html`<ul role="list" class="rows waiting">${waiting.map((one) => html`<${Row} key=${one.id} one=${one} may=${may} confirm=${confirm} end=${end} />`)}</ul>`}
    ${
      given > 0 &&
      html`<details class="given" onToggle=${openTo(setOpen)}>
        <summary>What ${counted(given, 'person', 'people')} gave</summary>
        ${open && html`<${Given} platform=${id} changes=${changes} may=${may} end=${end} />`}
        ${
          may &&
          connections.map(
            ({ id: connection, label }) =>
              html`<button key=${connection} type="button" class="compact danger end-connection" onClick=${() => end({ words: `All tokens that people gave for the connection ${visibleLine(label)} of ${name} are ended.`, what: { connection_id: connection } })}>
                End all of ${connections.length > 1 ? `${visibleLine(label)} of ` : ''}${name}
              </button>`,
          )
        }
      </details>`
    }
    ${may && html`<${Switch} key=${JSON.stringify(setting)} platform=${platform} changed=${changed} />`}
  </section>`;
}

const INTERVAL_MS = 10_000;

/**
 * A page of what people gave for a platform, oldest first.
 *
 * @param {{ platform: string, changes: number, may: boolean, end: (ending: Ending) => void }} props
 */
function Given({ platform, changes, may, end }) {
  const { answer, error, reload, previous, next } = usePage(
    /** @type {const} */ (`/owner/people?state=given&platform=${encodeURIComponent(platform)}&limit=50`),
    INTERVAL_MS,
  );
  useEffect(() => {
    if (changes > 0) reload();
  }, [changes]);
  return html`
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!answer && !error && html`<${Loading} />`}
    <ul role="list" class="rows">${answer?.tokens.map((one) => html`<${Row} key=${one.id} one=${one} may=${may} end=${end} />`)}</ul>
    <${Pager} previous=${previous} next=${next} />
  `;
}

const counted = (/** @type {number} */ count, /** @type {string} */ one, /** @type {string} */ more) =>
  `${count} ${count === 1 ? one : more}`;

/** @type {Record<PersonTokens['state'], { kind: string, words: string }>} */
const STATE = {
  unconfirmed: { kind: 'wait', words: 'Waits to be confirmed' },
  active: { kind: 'good', words: 'In use' },
  reauth_needed: { kind: 'bad', words: 'Access revoked by the platform' },
};

/** @param {{ one: PersonTokens, may: boolean, confirm?: (one: PersonTokens) => void, end: (ending: Ending) => void }} props */
function Row({ one, may, confirm, end }) {
  const { id, person_id, account, named_by, verified, agent, state, created_at } = one;
  const { kind, words } = STATE[state];
  const waits = state === 'unconfirmed';
  const whose = waits ? visibleLine(account ?? 'an account without a name') : `person ${person_id.slice(0, 8)}`;
  return html`<li class="row" data-tokens=${id} data-state=${state}>
    <div class="what">
      <p class="name">${waits ? html`<strong class="theirs account">${whose}</strong>` : html`<code>${person_id}</code>`} <span class="badge" data-kind=${kind}>${words}</span></p>
      <p class="small quiet">${verified ? 'Verified by' : 'Asserted by'} <span class="theirs">${visibleLine(named_by)}</span>${agent && html` · <code class="theirs">${visibleLine(agent)}</code> asked`} · given <${Ago} at=${created_at} /></p>
    </div>
    ${
      may &&
      html`<div class="buttons">
        ${waits && confirm && html`<button type="button" class="compact primary confirm" onClick=${() => confirm(one)}>Confirm…<span class="unseen"> ${whose}</span></button>`}
        <button type="button" class="compact danger end" onClick=${() => end({ words: waits ? `The account ${whose} is not used.` : 'All tokens that this person gave are ended, on all platforms.', what: waits ? { id } : { person_id } })}>End…<span class="unseen"> ${whose}</span></button>
      </div>`
    }
  </li>`;
}

// The setting of a platform whether each person has their own token, and which sources may assert a person's identity.
/** @param {{ platform: PeopleOfPlatform, changed: () => void }} props */
function Switch({ platform: { platform_id: id, name, per_person: before }, changed }) {
  const [enabled, setEnabled] = useState(before?.enabled ?? false);
  const [sources, setSources] = useState((before?.asserted ?? []).join(' '));
  const [confirms, setConfirms] = useState(before?.asserted_consent !== 'link');
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const asserted = sources.split(/[\s,]+/).filter((source) => source !== '');
    const done = await run(async () => {
      await ask('POST', `/owner/platforms/${encodeURIComponent(id)}/per-person`, {
        enabled,
        asserted,
        asserted_consent: confirms ? 'confirm' : 'link',
      });
      announce(enabled ? `${name} holds one token per person.` : `${name} uses the organisation's own token.`, 'good');
    });
    if (done) changed();
  };
  return html`<details class="switch">
    <summary>Settings<span class="unseen"> of ${name}</span></summary>
    <form onSubmit=${save}>
      <label><input type="checkbox" class="enabled" checked=${enabled} onChange=${checkedTo(setEnabled)} /> Each person has a token of their own</label>
      <label for=${`sources-${id}`}>Trusted sources: whose unsigned names of people are accepted, such as slack</label>
      <input id=${`sources-${id}`} type="text" autocomplete="off" spellcheck="false" value=${sources} onInput=${valueTo(setSources)} />
      <p class="quiet small">An agent that is made to say another id then acts for another person. Signed assertions of trusted issuers are always accepted.</p>
      <label><input type="checkbox" class="confirms" checked=${confirms} onChange=${checkedTo(setConfirms)} /> An owner confirms accounts of such people before they are used</label>
      ${before?.enabled && !enabled && html`<p class="notice" data-kind="wait">From then on calls use the token of the connection itself, if it has one, for every person.</p>`}
      <${Problem} problem=${problem} />
      <div class="buttons"><button type="submit" class="save" disabled=${busy}>Save<span class="unseen"> for ${name}</span></button></div>
    </form>
  </details>`;
}
