// What the application says of itself, what it gets, and the two buttons.
import { html, useId, useState } from '/console/html.js';
import { visibleLine } from '/console/visible.js';

const CAN = {
  'mcp:read': 'see what it may do, ask for access, and read where you let it',
  'mcp:write': 'change and delete where you let it, after your approval where your policy asks for it',
};

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** By name of the choice: what it grants. */
const grantsOf = {
  reads: ({ platforms }) => chosen(platforms, (one) => one.reads),
  all: ({ platforms }) => chosen(platforms, (one) => one.all),
  nothing: () => [],
};

const chosen = (platforms, scopesOf) =>
  platforms
    .filter(({ connected }) => connected)
    .map((one) => ({ platformId: one.platform, scopes: scopesOf(one).slice(0, 100) }))
    .filter(({ scopes }) => scopes.length > 0)
    .slice(0, 20);

export function Asked({ asked, decide }) {
  const { client, offer, owner, scopes } = asked;
  const [agent, setAgent] = useState('');
  const [name, setName] = useState(offer.name);
  const [choice, setChoice] = useState('reads');
  const [policy, setPolicy] = useState(offer.policies[0]?.id);
  const [state, setState] = useState({});
  const like = offer.alike.find((one) => `like ${one.agent_id}` === choice);
  const grants = like ? like.grants : grantsOf[choice](offer);
  const say = (decision) => {
    setState({ busy: true });
    decide(decision).catch(({ message }) => setState({ message }));
  };
  const allow = (event) => {
    event.preventDefault();
    say(agent === '' ? { allow: true, name: name.trim(), grants, ...(policy && { policy }) } : { allow: true, agent });
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
          client.vouched_by
            ? html`<span class="theirs">${visibleLine(client.vouched_by)}</span> says so`
            : 'It gave itself this name; nobody has checked it.'
        }</dd>
        <dt>It can</dt>
        <dd>${scopes.map((scope) => html`<div>${CAN[scope] ?? scope}</div>`)}</dd>
        <dt>You are</dt>
        <dd class="theirs">${visibleLine(owner.email)}</dd>
      </dl>
      <p class="notice" data-kind="wait">Did you just connect this application yourself? If somebody sent you here, say no.</p>
      ${
        mayAllow
          ? html`<${Terms} ...${{ offer, agent, setAgent, name, setName, choice, setChoice, policy, setPolicy, grants }} />`
          : html`<p class="notice" data-kind="bad">Only an admin lets new applications in. Your role is ${owner.role}.</p>`
      }
      ${state.message && html`<p class="notice" data-kind="bad" role="alert" id="problem">${state.message}</p>`}
      <div class="buttons">
        ${mayAllow && html`<button type="submit" class="primary" id="allow" disabled=${state.busy}>Connect</button>`}
        <button type="button" id="refuse" disabled=${state.busy} onClick=${() => say({ allow: false })}>No</button>
      </div>
      <p class="quiet small">
        It acts as an agent of yours: you see its calls, suspend it, or revoke it in the console at any time. It is asked for
        again after ${asked.lasts_days} days.
      </p>
    </form>
  `;
}

function Terms({ offer, agent, setAgent, name, setName, choice, setChoice, policy, setPolicy, grants }) {
  const id = useId();
  return html`
    ${
      offer.known.length > 0 &&
      html`<div class="field">
        <label for="${id}-agent">As which agent</label>
        <select id="${id}-agent" value=${agent} onChange=${({ target }) => setAgent(target.value)}>
          <option value="">A new one</option>
          ${offer.known.map((one) => html`<option value=${one.agent_id}>${visibleLine(one.name)}, with what it may do already</option>`)}
        </select>
      </div>`
    }
    ${
      agent === '' &&
      html`
        <div class="field">
          <label for="${id}-name">What to call it</label>
          <input id="${id}-name" required maxlength="100" autocomplete="off" value=${name} onInput=${({ target }) => setName(target.value)} />
        </div>
        <fieldset>
          <legend>What it may do</legend>
          <${Choice} name="reads" ...${{ choice, setChoice }}>Read what is connected<//>
          <${Choice} name="all" ...${{ choice, setChoice }}>Read and change what is connected<//>
          <${Choice} name="nothing" ...${{ choice, setChoice }}>Nothing yet: it asks, and you decide in the console<//>
          ${offer.alike.map((one) => html`<${Choice} name="like ${one.agent_id}" ...${{ choice, setChoice }}>The same as <span class="theirs">${visibleLine(one.name)}</span><//>`)}
        </fieldset>
        <p class="small given" id="given" aria-live="polite">
          ${
            grants.length === 0
              ? 'It gets no scopes.'
              : grants.flatMap((one) =>
                  one.scopes.map((scope) => html`<code class="theirs">${visibleLine(scope)}</code>`),
                )
          }
        </p>
        ${
          offer.policies.length === 0
            ? html`<p class="notice" data-kind="wait">You have no policy yet, and without one nothing is allowed. Give it one in the console.</p>`
            : html`<div class="field">
                <label for="${id}-policy">Under which policy</label>
                <select id="${id}-policy" value=${policy} onChange=${({ target }) => setPolicy(target.value)}>
                  ${offer.policies.map((one) => html`<option value=${one.id}>${visibleLine(one.name)}</option>`)}
                </select>
              </div>`
        }
      `
    }
  `;
}

const Choice = ({ name, choice, setChoice, children }) => html`
  <label class="choice">
    <input type="radio" name="access" value=${name} checked=${choice === name} onChange=${() => setChoice(name)} />
    <span>${children}</span>
  </label>
`;
