// The page of one held call, /approve/{id}: works on a phone, with a passkey and without a session, or with a session.
/** @typedef {import('/console/approve/held.js').Held} Held */
/** @typedef {import('/console/html.js').Children} Children */
import { useHeld } from '/console/approve/held.js';
import { Outcome } from '/console/approve/outcome.js';
import { Waiting } from '/console/approve/waiting.js';
import { byId, html, render } from '/console/html.js';
import { Level } from '/console/request-view/heading.js';
import { TimeLeft } from '/console/request-view/time-left.js';
import { Boundary } from '/console/shell/boundary.js';

const ID = location.pathname.split('/')[2] ?? '';

function Page() {
  const held = useHeld(ID);
  const { state } = held;
  return html`
    <header class="bar">
      <a class="brand" href="/console"><img src="/console/icon.svg" alt="" width="24" height="24" />Agent Broker</a>
      ${state.kind === 'waiting' && html`<${TimeLeft} held=${state.held} />`}
    </header>
    <${Level.Provider} value=${2}><main><${Boundary} what="This request"><${Content} id=${ID} ...${held} /><//></main><//>
  `;
}

/** @param {Held & { id: string }} props */
function Content({ id, state, me, mine, answered, deciding, look, lookAnew, lookWho }) {
  switch (state.kind) {
    case 'loading':
      return html`<p class="quiet settled" role="status">Loading…</p>`;
    case 'missing':
      return html`<${Message} title="There is no such request"
        text="The link may be incomplete. Ask the person who sent it for the complete link." />`;
    case 'failed':
      return html`<${Message} title="The request could not be loaded" text=${state.message}>
        <button type="button" onClick=${look}>Try again</button>
      <//>`;
    case 'over':
      return html`<${Outcome} outcome=${state.outcome} details=${state.details} held=${state.held} mine=${mine} answered=${answered} me=${me} />`;
    default:
      return html`<${Waiting} id=${id} state=${state} me=${me} answered=${answered} deciding=${deciding} look=${look} lookAnew=${lookAnew}
        lookWho=${lookWho} />`;
  }
}

/** @param {{ title: string, text: string, children?: Children }} props */
const Message = ({ title, text, children }) => html`<section class="settled">
  <h1>${title}</h1>
  <p class="quiet" role="status">${text}</p>
  ${children}
</section>`;

render(html`<${Page} />`, byId('page'));
