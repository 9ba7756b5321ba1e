// The editor of the rules as one text.
/** @typedef {import('/console/policy/draft.js').Draft} Draft */
import { asError } from '/console/api.js';
import { html, useEffect, useRef, useState } from '/console/html.js';
import { cardsOf } from '/console/policy/draft.js';
import { rulesIn, textOf } from '/console/policy/text.js';
import { Unseen } from '/console/policy/unseen.js';
import { visible } from '/console/visible.js';

/** Names of the forms. */
export const FORMS = /** @type {const} */ ({ cards: 'Cards', yaml: 'YAML', json: 'JSON' });

/**
 * `problem`: why the text is not a list of rules; undefined when it is one, or when the draft is not shown as text.
 *
 * @param {Draft} draft
 * @param {(to: Partial<Draft>) => void} change
 */
export function useForms(draft, change) {
  const [problem, setProblem] = useState(/** @type {string | undefined} */ (undefined));
  const latest = useRef(0);
  const { form } = draft;
  const said = (/** @type {unknown} */ thrown) => visible(asError(thrown).message);
  const read = async (/** @type {'yaml' | 'json'} */ as, /** @type {string} */ text) => {
    const mine = ++latest.current;
    try {
      const rules = await rulesIn(as, text);
      if (mine !== latest.current) return;
      setProblem(undefined);
      change({ cards: cardsOf(rules) });
    } catch (thrown) {
      if (mine === latest.current) setProblem(said(thrown));
    }
  };
  // A text that was kept over a reload may be invalid.
  useEffect(() => {
    if (form !== 'cards') rulesIn(form, draft.text).catch((thrown) => setProblem(said(thrown)));
  }, []);
  const write = (/** @type {string} */ text) => {
    change({ text });
    if (form !== 'cards') read(form, text);
  };
  const turn = async (/** @type {Draft['form']} */ to) => {
    if (to === form || problem !== undefined) return;
    try {
      const rules = draft.cards.map(({ rule }) => rule);
      change({ form: to, text: to === 'cards' ? '' : await textOf(to, rules) });
    } catch (thrown) {
      setProblem(said(thrown));
    }
  };
  return { problem, write, turn };
}

/** @param {{ draft: Draft, problem: string | undefined, problems: readonly string[], write: (text: string) => void }} props */
export const TextForm = ({ draft, problem, problems, write }) => html`
  <div class="field">
    <label for="rules-text">Rules as ${draft.form === 'json' ? 'JSON' : 'YAML'}</label>
    <textarea id="rules-text" class="mono" rows="18" spellcheck=${false} autocapitalize="off" aria-describedby="text-hint" aria-invalid=${problem || problems.length > 0 ? true : null}
      value=${draft.text} onInput=${(/** @type {{ currentTarget: HTMLTextAreaElement }} */ { currentTarget }) => write(currentTarget.value)} />
    <p class="hint" id="text-hint">The same rules as on the cards, as a governance file has them. Comments are not kept when they become cards.</p>
    <${Unseen} text=${draft.text} />
    ${problem && html`<pre class="wrong" role="alert" id="text-problem">${problem}</pre>`}
    ${problems.map((one) => html`<p class="wrong" role="alert" key=${one}>${visible(one)}</p>`)}
  </div>
`;
