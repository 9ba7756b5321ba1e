// The last applied governance files: who applied each, what it changed, and the way to undo it.
/** @typedef {import('../../answers.ts').GovernanceApply} GovernanceApply */
import { ask } from '/console/api.js';
import { Changes, sumOf } from '/console/governance/changes.js';
import { html, useState } from '/console/html.js';
import { whoMade } from '/console/policy/versions.js';
import { useChangers } from '/console/shell/changers.js';
import { openTo } from '/console/shell/fields.js';
import { Failed, useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 30_000;

/** `goBack` receives the file that undoes an apply. @param {{ goBack: (text: string) => void }} props */
export function Applies({ goBack }) {
  const { answer, error, reload } = useLoaded('/owner/governance/applies', INTERVAL_MS);
  const owners = useChangers();
  const applies = answer?.applies;
  return html`<section class="stack" aria-labelledby="applies-head">
    <h2 id="applies-head">What was applied</h2>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${applies?.length === 0 && html`<p class="quiet">No file has changed anything yet. The last 20 applies that change something are listed here, and each can be undone.</p>`}
    ${
      applies &&
      applies.length > 0 &&
      html`<ol role="list" class="sheet rows" id="applies">
        ${applies.map((one) => html`<${Apply} key=${one.id} apply=${one} owners=${owners} goBack=${goBack} />`)}
      </ol>`
    }
  </section>`;
}

/** @param {{ apply: GovernanceApply, owners: ReadonlyMap<string, string>, goBack: (text: string) => void }} props */
function Apply({ apply, owners, goBack }) {
  const [open, setOpen] = useState(false);
  const { busy, problem, run } = useDoing();
  const { id, changes, change_count: count, applied_at: at, detail, has_file } = apply;
  const take = () => run(async () => goBack((await ask('GET', `/owner/governance/applies/${id}/before`)).text));
  return html`<li class="row" data-apply=${id}>
    <details onToggle=${openTo(setOpen)}>
      <summary>
        <strong>${count > changes.length ? `${count} changes` : sumOf(changes) || 'Agents are managed by the file now'}</strong>
        <span class="small quiet">${' '}<${Ago} at=${at} /> · ${whoMade(apply, owners)}</span>
      </summary>
      ${
        open &&
        html`<div class="stack opened">
          ${detail && html`<p class="small quiet theirs">${visibleLine(detail)}</p>`}
          <${Changes} changes=${changes} id=${`changes-${id}`} />
          ${count > changes.length && html`<p class="quiet small">And ${count - changes.length} more, which are not kept.</p>`}
          <p class="small"><${Link} to=${`/console/activity?words=${id}`}>This apply in the activity<//></p>
          ${
            has_file
              ? html`<p class="quiet small">Going back undoes this apply and all later changes, as far as a governance file covers them. The changes are shown before they are applied. Stored secrets stay.</p>
                <div class="buttons"><button type="button" class="go-back" disabled=${busy} onClick=${take}>Preview going back to the state before</button></div>`
              : html`<p class="quiet small">The state before it exceeds the size limit of a file, and was not kept.</p>`
          }
          <${Problem} problem=${problem} />
        </div>`
      }
    </details>
  </li>`;
}
