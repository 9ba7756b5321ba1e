// The versions of the rules: who changed them when, and each change.
/** @typedef {import('../../answers.ts').RulesVersion} RulesVersion */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
import { HOW } from '/console/activity/row-labels.js';
import { asError, ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { DiffView } from '/console/policy/diff-view.js';
import { useChangers } from '/console/shell/changers.js';
import { openTo } from '/console/shell/fields.js';
import { Failed } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

const PAGE = 10;

/** @param {Subject} subject @param {number | null} before */
export async function loadVersions({ kind, id }, before = null) {
  const query = `limit=${PAGE}${before === null ? '' : `&before=${before}`}`;
  const path =
    kind === 'guardrails' ? `/owner/guardrails/versions?${query}` : `/owner/policies/${id}/versions?${query}`;
  return await ask('GET', /** @type {'/owner/guardrails/versions'} */ (path));
}

/** @param {Pick<RulesVersion, 'made_by'>} version @param {ReadonlyMap<string, string>} owners */
export function whoMade({ made_by: made }, owners) {
  if (!made) return 'nobody on record';
  if (made.how === 'start') return 'the configuration at the start';
  const who =
    owners.get(made.by) ??
    (made.by === 'operator' ? 'the operator' : made.how === 'pipeline' ? 'a removed pipeline' : 'a former owner');
  return HOW[made.how] ? `${visibleLine(who)}, ${HOW[made.how]}` : visibleLine(who);
}

/** @param {{ subject: Subject }} props */
export function Versions({ subject }) {
  const [versions, setVersions] = useState(/** @type {RulesVersion[]} */ ([]));
  const [next, setNext] = useState(/** @type {number | null} */ (null));
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const owners = useChangers();
  const load = async (/** @type {number | null} */ before) => {
    setError(undefined);
    try {
      const page = await loadVersions(subject, before);
      setVersions((shown) => (before === null ? page.versions : [...shown, ...page.versions]));
      setNext(page.next);
    } catch (thrown) {
      setError(asError(thrown));
    }
  };
  useEffect(() => void load(null), [subject.id, subject.version]);
  return html`
    <section aria-labelledby="versions-head">
      <div class="section-head"><h2 id="versions-head">Versions</h2></div>
      ${error && html`<${Failed} error=${error} again=${() => load(null)} />`}
      ${versions.length === 0 && !error && html`<p class="quiet">${subject.version === 0 ? 'Nobody has changed them yet.' : 'Loading…'}</p>`}
      ${
        versions.length > 0 &&
        html`<ol role="list" class="sheet rows" id="versions">
          ${versions.map((version, at) => html`<${Version} key=${version.version} version=${version} former=${versions[at + 1]} owners=${owners} inForce=${version.version === subject.version} />`)}
        </ol>`
      }
      ${next !== null && html`<p class="more"><button type="button" id="older-versions" onClick=${() => load(next)}>Older versions</button></p>`}
    </section>
  `;
}

/** `former`: the previous version, if loaded. @param {{ version: RulesVersion, former: RulesVersion | undefined, owners: ReadonlyMap<string, string>, inForce: boolean }} props */
function Version({ version, former, owners, inForce }) {
  const [open, setOpen] = useState(false);
  const rules = /** @type {Rule[]} */ (version.rules);
  const before = /** @type {Rule[] | undefined} */ (former?.rules ?? (version.version === 1 ? [] : undefined));
  return html`
    <li class="row">
      <details onToggle=${openTo(setOpen)}>
        <summary>
          <strong>Version ${version.version}</strong>${inForce && html` <span class="badge" data-kind="good">In force</span>`}
          <span class="small quiet">${' '}<${Ago} at=${version.created_at} /> · ${whoMade(version, owners)}</span>
        </summary>
        ${
          open &&
          html`<div class="stack opened">
            ${before ? html`<${DiffView} before=${before} after=${rules} none=${version.version === 1 ? 'It began without rules.' : 'The rules are those of the version before.'} />` : html`<p class="small quiet">Load older versions to see what differs from the one before.</p>`}
            ${version.made_by && html`<p class="small"><${Link} to=${`/console/activity?words=${version.made_by.audit_id}`}>This change in the activity<//></p>`}
          </div>`
        }
      </details>
    </li>
  `;
}
