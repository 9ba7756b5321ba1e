// The view of an opened registration: what the future agent says about itself, and what it would get.
/** @typedef {import('../../answers.ts').Me} Me */
/** @typedef {import('../../answers.ts').Registration} Asking */
/** @typedef {import('/console/inbox/entries.js').RegistrationEntry} RegistrationEntry */
import { html, useState } from '/console/html.js';
import { Buttons } from '/console/inbox/buttons.js';
import { NewName, RequestedScopes, Scopes, wordOf } from '/console/inbox/registration-terms.js';
import { useShown, useWhole } from '/console/inbox/use-whole.js';
import { Lines, Unseen } from '/console/request-view/body.js';
import { counted, countUnseen } from '/console/request-view/text.js';
import { formatMoment } from '/console/request-view/time-left.js';
import { Failed, Loading } from '/console/shell/loaded.js';
import { mayDecide, useOwner } from '/console/shell/owner.js';
import { visibleLine } from '/console/visible.js';

/** @type {readonly [words: string, doing: string]} */
const REJECT = ['Reject…', 'Rejecting…'];

/**
 * Props as for Approval; `shown` also receives the scopes to grant.
 *
 * @param {import('/console/inbox/entries.js').Opened<RegistrationEntry>} props
 */
export function Registration({ entry, version, waits, busy, shown, act }) {
  const { whole: asked, error, load } = useWhole(entry, version);
  const [left, setLeft] = useState(/** @type {Set<string>} */ (new Set()));
  const [name, setName] = useState('');
  const owner = useOwner();
  const may = waits && mayDecide(owner) && asked?.may_decide === true;
  const word = asked && wordOf(asked, left, name);
  const named = !asked?.namesake || word?.name !== undefined;
  useShown(shown, may ? asked : undefined, named, word);
  if (error) return html`<${Failed} error=${error} again=${load} />`;
  if (!asked || !word) return html`<${Loading} />`;
  const number = word.scopes.reduce((sum, { scopes }) => sum + scopes.length, 0);
  return html`
    <div class="access">
      <section class="part">
        ${
          waits &&
          html`<p class="notice" data-kind="wait">
            <span><strong>Nobody checked who this is.</strong> Approve only what you started yourself, or know about from the person who started it.</span>
          </p>`
        }
        <${Facts} asked=${asked} me=${owner} waits=${waits} />
      </section>
      ${may && asked.namesake && html`<${NewName} asked=${asked} name=${name} change=${setName} />`}
      ${may ? html`<${Scopes} asked=${asked} left=${left} leave=${setLeft} />` : html`<${RequestedScopes} asked=${asked} />`}
      ${
        asked.agent_description &&
        html`<section class="part from-agent">
          <h3>In its own words</h3>
          <p class="quiet small">What it says it is for. Nobody checked it.</p>
          <${Lines} text=${asked.agent_description} label="In its own words" />
          <${Unseen} text=${asked.agent_description} />
        </section>`
      }
    </div>
    ${
      waits &&
      html`<${Buttons}
        approve=${number > 0 ? `Approve (${counted(number, 'scope')})…` : 'Approve (no scopes)…'}
        deny=${REJECT}
        seen=${named}
        why=${!named && 'Give it a name that no other agent has, or reject it.'}
        not=${!asked.may_decide && `It asks ${visibleLine(asked.owner_email ?? 'another owner')}: that owner or an admin decides.`}
        busy=${busy}
        act=${act}
      />`
    }
  `;
}

/** @param {{ asked: Asking, me: Me, waits: boolean }} props */
function Facts({ asked, me, waits }) {
  const { agent_name, owner_id, owner_email, policy, source, expires_at } = asked;
  return html`
    <dl class="facts">
      ${
        countUnseen(agent_name) > 0 &&
        html`<dt>Name</dt>
          <dd><span class="theirs">${visibleLine(agent_name)}</span> <${Unseen} text=${agent_name} /></dd>`
      }
      <dt>Owner</dt>
      <dd>
        it names <span class="theirs">${visibleLine(owner_email ?? owner_id)}</span>${owner_id === me.id && html` <span class="quiet">(you)</span>`}
      </dd>
      <dt>From</dt>
      <dd><code class="theirs">${visibleLine(source)}</code></dd>
      ${
        waits &&
        html`<dt>Policy</dt>
          <dd>
            ${
              policy
                ? html`it gets <span class="theirs">${visibleLine(policy.name)}</span> <span class="quiet">version ${policy.version}</span>`
                : 'none: every call is denied until an admin gives it one'
            }
          </dd>
          <dt>Waits until</dt><dd>${formatMoment(expires_at)}</dd>`
      }
    </dl>
  `;
}
