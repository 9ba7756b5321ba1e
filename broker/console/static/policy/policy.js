// The page of one policy, or of the guardrails: read, change and try its rules.
/** @typedef {import('/console/policy/subject.js').Saved} Saved */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
import { Refused } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { LIST } from '/console/policies/place.js';
import { RuleLine } from '/console/policies/rule-line.js';
import { AgentsUnder } from '/console/policy/agents-under.js';
import { Editor } from '/console/policy/editor.js';
import { useSubject } from '/console/policy/subject.js';
import { Versions } from '/console/policy/versions.js';
import { takeWarnings, Warnings } from '/console/policy/warnings.js';
import { Empty, Failed, Loading } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link, navigate } from '/console/shell/router.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ place: URL }} props */
export function PolicyPage({ place }) {
  const named = decodeURIComponent(place.pathname.split('/').at(-1) ?? '');
  const { subject, error, reload } = useSubject(named);
  const editing = place.searchParams.has('edit');
  const saved = () => {
    navigate(place.pathname, { sure: true });
    reload();
  };
  if (error instanceof Refused && error.status === 404 && !subject) return html`<${Unknown} name=${named} />`;
  return html`
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!subject && !error && html`<${Loading} />`}
    ${
      subject &&
      (editing
        ? html`<${Editor} key=${subject.id} inForce=${subject} reload=${reload} back=${place.pathname} onSaved=${saved} />`
        : html`<${Read} subject=${subject} place=${place} reload=${reload} />`)
    }
  `;
}

/** @param {{ subject: Subject, place: URL, reload: () => void }} props */
function Read({ subject, place, reload }) {
  const owner = useOwner();
  const may = mayChange(owner);
  const [warnings] = useState(() => takeWarnings(subject.id));
  const { kind, name, version, rules, agents } = subject;
  const edit = `${place.pathname}?edit`;
  const count = rules.length === 1 ? '1 rule' : `${rules.length} rules`;
  const whom = kind === 'guardrails' ? 'for every agent' : agents === 1 ? 'of 1 agent' : `of ${agents} agents`;
  return html`
    <div class="policy-page" data-policy=${name} data-version=${version}>
      <div class="page-head">
        <div>
          <p class="small"><${Link} to=${LIST} id="to-policies">Policies<//></p>
          <h1 class="theirs">${visibleLine(name)}</h1>
          <p class="small quiet">${version === 0 ? 'Never written' : `Version ${version}`} · ${count} ${whom}</p>
        </div>
        <div class="buttons">
          ${kind === 'policy' && may && html`<${Link} class="button" id="copy" to=${`${LIST}?new=copy&from=${encodeURIComponent(subject.id)}`}>Copy<//>`}
          <${Link} class=${may ? 'button primary' : 'button'} id="edit" to=${edit}>${may ? 'Change or try…' : 'Try changes…'}<//>
        </div>
      </div>
      ${!may && html`<p class="quiet small role">Your role is ${owner.role}: you can try other rules, and an admin can save them.</p>`}
      <div class="stack">
        <${Warnings} warnings=${warnings} />
        <section aria-labelledby="rules-head">
          <div class="section-head"><h2 id="rules-head">Rules</h2></div>
          <p class="small quiet">${ORDER[kind]}</p>
          ${rules.length === 0 ? html`<p class="sheet none">${NONE[kind]}</p>` : html`<${Rules} subject=${subject} />`}
        </section>
        ${kind === 'policy' && html`<${AgentsUnder} subject=${subject} may=${may} changed=${reload} />`}
        <${Versions} subject=${subject} />
      </div>
    </div>
  `;
}

const ORDER = {
  policy:
    'The most severe rule that matches wins: deny, then ask a person, then allow. Their order does not matter. What no rule allows is refused.',
  guardrails:
    'For every agent, regardless of its policy. The most severe that matches wins: suspend, then deny, then ask a person. Their order does not matter.',
};

const NONE = {
  policy: 'There are no rules: every call of the agents under it is refused.',
  guardrails: 'There are none: only the policies decide.',
};

/** Number of rules drawn first, and added for each press of the button. */
const DRAWN = 50;

/** @param {{ subject: Subject }} props */
function Rules({ subject: { rules, words } }) {
  const [drawn, setDrawn] = useState(DRAWN);
  return html`
    <ul role="list" class="sheet rows" id="rules">
      ${rules.slice(0, drawn).map((rule, at) => html`<${RuleLine} key=${at} rule=${rule} at=${at} words=${words[at] ?? ''} />`)}
    </ul>
    ${rules.length > drawn && html`<p class="more"><button type="button" id="more-rules" onClick=${() => setDrawn(drawn + DRAWN)}>Show more (${rules.length - drawn} not shown)</button></p>`}
  `;
}

/** @param {{ name: string }} props */
const Unknown = ({ name }) => html`
  <div class="page-head"><h1>Policy</h1></div>
  <${Empty} title="There is no such policy">
    <p>Your organisation has no policy <code class="theirs">${visibleLine(name)}</code>. It may have been removed by a governance file.</p>
    <p><${Link} to=${LIST} class="button primary">All policies<//></p>
  <//>
`;
