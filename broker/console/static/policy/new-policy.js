// The page of a new policy that is not saved yet.
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/subject.js').Saved} Saved */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
import { html } from '/console/html.js';
import { LIST, pageOfPolicy } from '/console/policies/place.js';
import { STARTS } from '/console/policies/starts.js';
import { Editor } from '/console/policy/editor.js';
import { useSubject } from '/console/policy/subject.js';
import { Failed, Loading } from '/console/shell/loaded.js';
import { navigate } from '/console/shell/router.js';

/** @param {{ begin: string, from: string | null }} props */
export function NewPolicy({ begin, from }) {
  if (begin === 'copy' && from) return html`<${Copied} from=${from} />`;
  const { name, rules } = STARTS[begin] ?? { name: 'new-policy', rules: [] };
  return html`<${Unsaved} id=${`new ${begin}`} name=${name} rules=${rules} />`;
}

/** @param {{ from: string }} props */
function Copied({ from }) {
  const { subject, error, reload } = useSubject(from);
  if (error) return html`<${Failed} error=${error} again=${reload} />`;
  if (!subject) return html`<${Loading} />`;
  return html`<${Unsaved} id=${`copy ${subject.id}`} name=${`${subject.name}-copy`.slice(0, 64)} rules=${subject.rules} />`;
}

/** @param {{ id: string, name: string, rules: Rule[] }} props */
function Unsaved({ id, name, rules }) {
  const subject = /** @type {Subject} */ ({ kind: 'policy', id, name, version: 0, rules, words: [], agents: 0 });
  const saved = (/** @type {Saved} */ made) => navigate(pageOfPolicy(made), { replace: true, sure: true });
  return html`<${Editor} inForce=${subject} reload=${async () => {}} back=${LIST} onSaved=${saved} />`;
}
