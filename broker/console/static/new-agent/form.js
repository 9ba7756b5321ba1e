/** @typedef {import('/console/grants/terms.js').Terms} Terms */
/** @typedef {import('../../answers.ts').NewInvite} NewInvite */
import { ask } from '/console/api.js';
import { bodyOf, listsOn, termsOf } from '/console/grants/terms.js';
import { TermsFields } from '/console/grants/terms-fields.js';
import { html, useState } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const SLOW_INTERVAL_MS = 60_000;

/** @typedef {{ platform: string, terms: Terms }} Granting */

/** The form of the invite. `invited` receives the invite with its secret. @param {{ invited: (invite: NewInvite) => void }} props */
export function Form({ invited }) {
  const platforms = useLoaded('/owner/platforms', SLOW_INTERVAL_MS).answer?.platforms;
  const policies = useLoaded('/owner/policies', SLOW_INTERVAL_MS).answer?.policies ?? [];
  const [name, setName] = useState('');
  const [policy, setPolicy] = useState('');
  const [next, setNext] = useState('');
  const [grants, setGrants] = useState(/** @type {readonly Granting[]} */ ([]));
  const { busy, problem, run, clear } = useDoing();
  const left = (platforms ?? []).filter(({ platform_id }) => !grants.some(({ platform }) => platform === platform_id));
  // Not on selection alone: moving with the arrow keys would add every platform passed.
  const add = () => {
    setGrants([...grants, { platform: next, terms: termsOf(undefined) }]);
    setNext('');
  };
  const empty = grants.find(({ terms }) => terms.scopes.length === 0);
  const invite = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (name.trim() === '' || empty) return;
    run(async () => {
      const asked = grants.map(({ platform, terms }) => {
        const { expires_in_seconds: seconds, ...body } = bodyOf(undefined, terms);
        return { platformId: platform, ...body, ...(typeof seconds === 'number' && { expires_in_seconds: seconds }) };
      });
      invited(
        await ask('POST', '/owner/invites', { agent_name: name.trim(), ...(policy && { policy }), grants: asked }),
      );
    });
  };
  return html`<form class="sheet part-like stack" id="invite-form" onInput=${clear} onSubmit=${invite}>
    <div class="field">
      <label for="agent-name">Name</label>
      <input id="agent-name" required maxlength="100" autocomplete="off" placeholder="triage" value=${name} onInput=${valueTo(setName)} />
    </div>
    ${
      policies.length > 1 &&
      html`<div class="field">
        <label for="agent-policy">Policy</label>
        <select id="agent-policy" onChange=${valueTo(setPolicy)}>
          <option value="">The default one</option>
          ${policies.map(({ id, name: words }) => html`<option key=${id} value=${id} selected=${id === policy}>${visibleLine(words)}</option>`)}
        </select>
      </div>`
    }
    ${grants.map(
      ({ platform, terms }) => html`<${GrantPart}
        key=${platform}
        platformId=${platform}
        terms=${terms}
        change=${(/** @type {Partial<Terms>} */ more) => setGrants(grants.map((one) => (one.platform === platform ? { platform, terms: { ...one.terms, ...more } } : one)))}
        drop=${() => setGrants(grants.filter((one) => one.platform !== platform))}
      />`,
    )}
    ${
      left.length > 0 &&
      html`<div class="field">
        <label for="add-platform">${grants.length === 0 ? 'What it may do' : 'On another platform'} <span class="quiet">(optional)</span></label>
        <div class="buttons"><select id="add-platform" onChange=${valueTo(setNext)}>
          <option value="" selected=${next === ''}>Choose a platform</option>
          ${left.map(({ platform_id, name: words }) => html`<option key=${platform_id} value=${platform_id} selected=${platform_id === next}>${visibleLine(words)}</option>`)}
        </select>
        <button type="button" id="add-grant" disabled=${next === ''} onClick=${add}>Add</button></div>
      </div>`
    }
    ${platforms?.length === 0 && html`<p class="quiet">There is no platform yet that it could be granted something on. <${Link} to="/console/connections">Connect one<//>, or grant it something later.</p>`}
    ${empty && html`<p class="quiet small" role="status">Choose what it may do on ${visibleLine(empty.platform)}, or leave that platform out.</p>`}
    <${Problem} problem=${problem} />
    <div class="buttons"><button type="submit" class="primary" id="invite" disabled=${busy || name.trim() === '' || empty !== undefined}>Create the invite</button></div>
  </form>`;
}

/** The grant of an invited agent on one platform; branches can be limited after it has joined. @param {{ platformId: string, terms: Terms, change: (more: Partial<Terms>) => void, drop: () => void }} props */
function GrantPart({ platformId, terms, change, drop }) {
  const { answer, error, reload } = useLoaded(/** @type {const} */ (`/owner/platforms/${platformId}`), 60_000);
  return html`<section class="grant-part stack" data-platform=${platformId} aria-label=${`What it may do on ${platformId}`}>
    <div class="section-head">
      <h2>On <span class="theirs">${visibleLine(answer?.name ?? platformId)}</span></h2>
      <button type="button" class="compact" onClick=${drop}>Leave out<span class="unseen"> ${platformId}</span></button>
    </div>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!answer && !error && html`<${Loading} />`}
    ${answer && html`<${TermsFields} platform=${answer} terms=${terms} lists=${listsOn(answer).filter((name) => name !== 'refs')} change=${change} />`}
  </section>`;
}
