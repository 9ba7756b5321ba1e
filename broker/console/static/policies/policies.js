// The organisation's policies, and the guardrails that take precedence over them.
/** @typedef {import('../../answers.ts').Policy} Policy */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
import { html, useState } from '/console/html.js';
import { effectOf } from '/console/policies/effects.js';
import { GUARDRAILS, LIST, pageOfPolicy } from '/console/policies/place.js';
import { STARTS } from '/console/policies/starts.js';
import { NewPolicy } from '/console/policy/new-policy.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { Empty, Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link, navigate } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 15_000;
/** Number of guardrails shown on this page. */
const MAX_SHOWN = 5;

/** @param {{ place: URL }} props */
export function PoliciesPage({ place }) {
  const begin = place.searchParams.get('new');
  return begin === null
    ? html`<${List} />`
    : html`<${NewPolicy} key=${place.search} begin=${begin} from=${place.searchParams.get('from')} />`;
}

function List() {
  const { answer, error, reload } = useLoaded('/owner/policies', INTERVAL_MS);
  const guardrails = useLoaded('/owner/guardrails', INTERVAL_MS);
  const [making, setMaking] = useState(false);
  const owner = useOwner();
  const may = mayChange(owner);
  const failed = error ?? guardrails.error;
  return html`
    <div class="page-head">
      <h1>Policies</h1>
      ${may && html`<button type="button" class="primary" id="new-policy" onClick=${() => setMaking(true)}>New policy…</button>`}
    </div>
    <div class="policies stack">
      <p class="quiet">A policy decides on the calls of the agents under it, within their grants. Guardrails apply to every agent in addition, and can only restrict.${!may && ` Your role is ${owner.role}: you can read and try them, and an admin can change them.`}</p>
      ${failed && html`<${Failed} error=${failed} again=${() => Promise.all([reload(), guardrails.reload()])} />`}
      ${guardrails.answer && html`<${Guardrails} ...${guardrails.answer} may=${may} />`}
      ${!answer && !failed && html`<${Loading} />`}
      ${answer && html`<${Policies} policies=${answer.policies} may=${may} />`}
    </div>
    ${making && html`<${StartDialog} policies=${answer?.policies ?? []} onClose=${() => setMaking(false)} />`}
  `;
}

/** @param {{ version: number, guardrails: Record<string, unknown>[], words: string[], may: boolean }} props */
function Guardrails({ version, guardrails, words, may }) {
  const rules = /** @type {Rule[]} */ (guardrails);
  return html`
    <section class="sheet" aria-labelledby="guardrails-head" id="guardrails">
      <div class="part">
        <h2 id="guardrails-head"><${Link} to=${`${LIST}/${GUARDRAILS}`}>Guardrails<//></h2>
        <p class="small quiet">For every agent${version > 0 ? ` · version ${version}` : ''}</p>
        ${
          rules.length === 0
            ? html`<p class="first">There are none yet: only the policies decide. ${may && html`<${Link} to=${`${LIST}/${GUARDRAILS}?edit`} id="first-guardrail">Write the first guardrail<//>`}</p>`
            : html`<ul role="list" class="said">
                ${rules.slice(0, MAX_SHOWN).map(({ name, effect }, at) => {
                  const { kind, words: badge } = effectOf(effect);
                  return html`<li key=${name}><span class="badge" data-kind=${kind}>${badge}</span> <span class="theirs"><strong>${visibleLine(name ?? '')}</strong>: ${visibleLine(words[at] ?? '')}</span></li>`;
                })}
              </ul>`
        }
        ${rules.length > MAX_SHOWN && html`<p class="small"><${Link} to=${`${LIST}/${GUARDRAILS}`}>All ${rules.length} guardrails<//></p>`}
      </div>
    </section>
  `;
}

/** @param {{ policies: readonly Policy[], may: boolean }} props */
function Policies({ policies, may }) {
  if (policies.length === 0)
    return html`<${Empty} title="There are no policies yet">
      <p>Without a policy every call of an agent is refused. ${may ? 'Begin with one of the usual ones: New policy…' : 'An admin can make one.'}</p>
    <//>`;
  return html`
    <ul role="list" class="sheet rows" id="policies" aria-label="Policies">
      ${policies.map(
        (policy) => html`<li key=${policy.id} class="row" data-policy=${policy.name}>
          <p class="name"><${Link} to=${pageOfPolicy(policy)} class="theirs">${visibleLine(policy.name)}<//></p>
          <p class="small quiet">${policy.agents === 0 ? 'No agents' : policy.agents === 1 ? '1 agent' : `${policy.agents} agents`} · version ${policy.version} · changed <${Ago} at=${policy.changed_at} /></p>
        </li>`,
      )}
    </ul>
  `;
}

/** The dialog that starts a new policy from a template or from another policy's rules. @param {{ policies: readonly Policy[], onClose: () => void }} props */
function StartDialog({ policies, onClose }) {
  const [chosen, choose] = useState('careful');
  const [from, setFrom] = useState(policies[0]?.name ?? '');
  const begin = () =>
    navigate(chosen === 'copy' ? `${LIST}?new=copy&from=${encodeURIComponent(from)}` : `${LIST}?new=${chosen}`);
  const option = (/** @type {string} */ value, /** @type {string} */ title, /** @type {string} */ what) => html`
    <label class="choice" key=${value}>
      <input type="radio" name="start" value=${value} checked=${chosen === value} onChange=${() => choose(value)} />
      <span><strong>${title}</strong><br /><span class="quiet small">${what}</span></span>
    </label>
  `;
  return html`
    <${Dialog} title="New policy" onClose=${onClose} onSubmit=${begin}>
      <fieldset class="starts">
        <legend>Begin with</legend>
        ${Object.entries(STARTS).map(([value, { title, what }]) => option(value, title, what))}
        ${policies.length > 0 && option('copy', 'The rules of another policy', 'A copy, which is changed separately from then on.')}
      </fieldset>
      ${
        chosen === 'copy' &&
        html`<div class="field">
          <label for="copied">Which policy</label>
          <select id="copied" onChange=${valueTo(setFrom)}>
            ${policies.map(({ name }) => html`<option key=${name} value=${name} selected=${name === from}>${visibleLine(name)}</option>`)}
          </select>
        </div>`
      }
      <p class="small quiet">Nothing is in force until you save it and put an agent under it.</p>
      <div class="buttons">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" id="begin">Begin</button>
      </div>
    <//>
  `;
}
