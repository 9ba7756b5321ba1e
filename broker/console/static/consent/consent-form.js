// What the application says about itself, what it would get, and the two buttons.
/** @typedef {import('../../answers.ts').Consent} Consent */
/** @typedef {import('../../answers.ts').ConsentDecision} ConsentDecision */
/** @typedef {import('../../answers.ts').ScopesOn} ScopesOn */
import { asError } from '/console/api.js';
import { grantsOf, SINGLE, Terms } from '/console/consent/terms.js';
import { html, useState } from '/console/html.js';
import { checkedTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

/** @type {Partial<Record<string, string>>} */
const CAN = {
  'mcp:read': 'see what it may do, ask for access, and read what it is granted',
  'mcp:write': 'change and delete what it is granted, after your approval where your policy asks for it',
};

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** @typedef {Extract<ConsentDecision, { allow: true }>} Allowing */

/** @param {{ asked: Consent, decide: (decision: ConsentDecision) => Promise<void> }} props */
export function ConsentForm({ asked, decide }) {
  const { client, offer, organisation, owner, scopes } = asked;
  // A client that needs more scopes, or new tokens, goes on as the agent that it was.
  const [agent, setAgent] = useState(offer.last ?? '');
  const [name, setName] = useState(offer.name);
  const [choice, setChoice] = useState('reads');
  const [picked, setPicked] = useState(/** @type {ScopesOn} */ ([]));
  const [given, setGiven] = useState(scopes);
  const [policy, setPolicy] = useState(offer.policies[0]?.id);
  const [state, setState] = useState(/** @type {{ busy?: boolean, message?: string }} */ ({}));
  const grants = choice === SINGLE ? picked : grantsOf(offer, choice);
  const choose = (/** @type {string} */ next) => {
    // Choosing single scopes starts with the scopes of the previous choice.
    if (next === SINGLE) setPicked(grants);
    setChoice(next);
  };
  const say = (/** @type {ConsentDecision} */ decision) => {
    setState({ busy: true });
    decide(decision).catch((thrown) => setState({ message: asError(thrown).message }));
  };
  const allow = (/** @type {Event} */ event) => {
    event.preventDefault();
    const as = agent === '' ? { name: name.trim(), grants, ...(policy && { policy }) } : { agent };
    // The broker lists the requested scopes, and refuses scopes that it does not know.
    const kept = /** @type {Allowing['scopes']} */ (given);
    say({ allow: true, ...as, ...(kept && { scopes: kept }), owner_id: owner.id });
  };
  const mayAllow = owner.role === 'admin';
  return html`
    <form class="terms" onSubmit=${allow}>
      <h1>Connect <span class="theirs" id="client">${visibleLine(client.name)}</span>?</h1>
      <dl class="facts">
        <dt>Sends you back to</dt>
        <dd class="theirs"><strong id="redirect-host">${visibleLine(client.redirect_host)}</strong>${LOOPBACK.includes(client.redirect_host) && ', a program on the computer in front of you'}</dd>
        <dt>Who it is</dt>
        <dd>${
          client.published_by
            ? html`<span class="theirs">${visibleLine(client.published_by)}</span> states this`
            : 'It chose this name itself; nobody has checked it.'
        }</dd>
        <dt>It asks to</dt>
        <dd><${Can} ...${{ scopes, given, setGiven, may: mayAllow }} /></dd>
        <dt>You are</dt>
        <dd class="theirs">${visibleLine(owner.email)}, ${owner.role} of <span id="organisation">${visibleLine(organisation.name)}</span>${asked.organisations.map(
          ({ id, name: other }) =>
            html`<br key=${id} /><a class="switch" href=${`/console/oidc/start?organisation=${id}&page=${location.pathname}`}>Switch to ${visibleLine(other)}</a>`,
        )}</dd>
      </dl>
      <p class="notice" data-kind="wait">Did you just connect this application yourself? If somebody sent you here, deny it.</p>
      ${
        mayAllow
          ? html`<${Terms} ...${{ offer, agent, setAgent, name, setName, choice, choose, picked, setPicked, policy, setPolicy, grants }} />`
          : html`<p class="notice" data-kind="bad">Only an admin can connect new applications. Your role is ${owner.role}.</p>`
      }
      ${mayAllow && agent === '' && choice === 'reads' && given.includes('mcp:write') && html`<p class="small quiet" id="not-yet">To change or delete anything, it has to ask you for access first.</p>`}
      ${state.message && html`<p class="notice" data-kind="bad" role="alert" id="problem">${state.message}</p>`}
      <div class="buttons">
        ${mayAllow && html`<button type="submit" class="primary" id="allow" disabled=${state.busy || given.length === 0}>Connect</button>`}
        <button type="button" id="refuse" disabled=${state.busy} onClick=${() => say({ allow: false })}>Deny</button>
      </div>
      <p class="quiet small">
        It acts as an agent of yours: you see its calls, suspend it, or revoke it in the console at any time. Your consent is
        requested again after ${asked.lasts_days} days.
      </p>
    </form>
  `;
}

/**
 * The requested MCP scopes; of two, an admin may remove one.
 *
 * @param {{ scopes: string[], given: string[], setGiven: (given: string[]) => void, may: boolean }} props
 */
function Can({ scopes, given, setGiven, may }) {
  if (!may || scopes.length === 1) return scopes.map((scope) => html`<div>${CAN[scope] ?? scope}</div>`);
  const change = (/** @type {string} */ scope) =>
    checkedTo((checked) => setGiven(scopes.filter((one) => (one === scope ? checked : given.includes(one)))));
  return html`<fieldset>
    <legend class="unseen">It asks to</legend>
    ${scopes.map(
      (scope) => html`<label class="choice" key=${scope}>
        <input type="checkbox" name=${scope} checked=${given.includes(scope)} onChange=${change(scope)} />
        <span>${CAN[scope] ?? scope}</span>
      </label>`,
    )}
    ${given.length === 0 && html`<p class="small" role="status">Choose at least one of them, or deny it.</p>`}
  </fieldset>`;
}
