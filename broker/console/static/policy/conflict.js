// Another owner saved a version while this draft was edited: shows both changes, so that none is lost unseen.
/** @typedef {import('../../answers.ts').RulesVersion} RulesVersion */
/** @typedef {import('/console/policy/draft.js').Draft} Draft */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
import { html, useEffect, useState } from '/console/html.js';
import { DiffView } from '/console/policy/diff-view.js';
import { differences, merged } from '/console/policy/differ.js';
import { cardsOf } from '/console/policy/draft.js';
import { loadVersions, whoMade } from '/console/policy/versions.js';
import { useChangers } from '/console/shell/changers.js';

/** @param {{ inForce: Subject, draft: Draft, change: (to: Partial<Draft>) => void, drop: () => void }} props */
export function Conflict({ inForce, draft, change, drop }) {
  const [made, setMade] = useState(/** @type {RulesVersion | undefined} */ (undefined));
  const owners = useChangers();
  useEffect(() => {
    loadVersions(inForce).then(
      ({ versions }) => setMade(versions.find(({ version }) => version === inForce.version)),
      () => {},
    );
  }, [inForce.id, inForce.version]);
  const mine = draft.cards.map(({ rule }) => rule);
  const both = bothChanged(draft.baseRules, mine, inForce.rules);
  const onto = (/** @type {Partial<Draft>} */ more) =>
    change({ base: inForce.version, baseRules: inForce.rules, form: 'cards', text: '', ...more });
  return html`
    <section class="sheet part-like conflict" role="alert" aria-labelledby="conflict-head" id="conflict">
        <h2 id="conflict-head">Version ${inForce.version} was saved meanwhile${made && ` by ${whoMade(made, owners)}`}</h2>
        <p>You began with version ${draft.base}. Your changes are kept. What the other version changed:</p>
        <${DiffView} before=${draft.baseRules} after=${inForce.rules} />
        ${both.length > 0 && html`<p>Both of you changed ${both.map((name) => `“${name}”`).join(', ')}: if you put the changes together, both rules are listed, and you take one out.</p>`}
        <div class="buttons">
          <button type="button" class="primary" id="put-together" onClick=${() => onto({ cards: cardsOf(merged(draft.baseRules, mine, inForce.rules)) })}>Put my changes into version ${inForce.version}</button>
          <button type="button" id="keep-mine" onClick=${() => onto({})}>Go on with mine: theirs is undone</button>
          <button type="button" id="take-theirs" onClick=${drop}>Drop mine</button>
        </div>
    </section>
  `;
}

/** Returns the names of rules that both changed. @param {Draft['baseRules']} base @param {Draft['baseRules']} mine @param {Draft['baseRules']} theirs */
function bothChanged(base, mine, theirs) {
  const changedBy = (/** @type {Draft['baseRules']} */ rules) =>
    new Set(differences(base, rules).flatMap(({ before, after }) => [before?.name ?? after?.name ?? '']));
  const other = changedBy(theirs);
  return [...changedBy(mine)].filter((name) => name !== '' && other.has(name));
}
