// The field of a condition, with the available variables and functions.
/** @typedef {import('/console/policy/condition-words.js').Word} Word */
import { html, useLayoutEffect, useRef, useState } from '/console/html.js';
import { FUNCTIONS, VARIABLES, WHOLE, wordsFor } from '/console/policy/condition-words.js';
import { OptionList, useOptions } from '/console/policy/options.js';
import { Unseen } from '/console/policy/unseen.js';

/** @param {{ id: string, value: string, problems: readonly string[], change: (value: string | undefined) => void }} props */
export function ConditionField({ id, value, problems, change }) {
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const [word, setWord] = useState('');
  // The caret position after an inserted word: set in the render that shows the word, so that a key pressed right after it is inserted there.
  const next = useRef(/** @type {number | undefined} */ (undefined));
  useLayoutEffect(() => {
    if (next.current === undefined) return;
    area.current?.focus();
    area.current?.setSelectionRange(next.current, next.current);
    next.current = undefined;
  });
  const write = (/** @type {string} */ text, /** @type {number} */ from, /** @type {number} */ to) => {
    const whole = value.slice(0, from) + text + value.slice(to);
    next.current = from + text.length;
    change(whole === '' ? undefined : whole);
    setWord('');
  };
  const caret = () => area.current?.selectionEnd ?? value.length;
  const take = (/** @type {string} */ text) => write(text, caret() - word.length, caret());
  const { pressed, isOpen, active, list, show } = useOptions({ id, options: wordsFor(word), take });
  const written = (/** @type {{ currentTarget: HTMLTextAreaElement }} */ { currentTarget }) => {
    change(currentTarget.value === '' ? undefined : currentTarget.value);
    setWord(/[\w.]*$/.exec(currentTarget.value.slice(0, currentTarget.selectionEnd))?.[0] ?? '');
    show(true);
  };
  const insert = (/** @type {string} */ text) => {
    const at = area.current?.selectionEnd ?? value.length;
    const before = value.slice(0, at);
    write(before === '' || /[\s(!]$/.test(before) ? text : ` ${text}`, at, at);
  };
  return html`
    <div class="field" data-field="when">
      <label for=${id}>Condition <span class="quiet">(optional)</span></label>
      <div class="combo">
        <textarea id=${id} ref=${area} class="mono" rows="2" maxlength="2048" spellcheck=${false} autocapitalize="off"
          aria-autocomplete="list" aria-controls=${isOpen ? list.id : null} aria-activedescendant=${active}
          aria-describedby=${`${id}-hint`} aria-invalid=${problems.length > 0 ? true : null}
          value=${value} onInput=${written} onKeyDown=${pressed} onBlur=${() => show(false)} />
        ${isOpen && html`<${OptionList} ...${list} label="Words of a condition" />`}
      </div>
      <p class="hint" id=${`${id}-hint`}>CEL. If it cannot be evaluated, the stricter outcome applies. Type a word, and choose with the arrow keys and Enter.</p>
      <${Unseen} text=${value} />
      ${problems.map((problem) => html`<p class="wrong" role="alert" key=${problem}>${problem}</p>`)}
      <details class="words">
        <summary>What a condition can read</summary>
        <${Words} title="Often wanted" words=${WHOLE} insert=${insert} />
        <${Words} title="Values" words=${VARIABLES} insert=${insert} />
        <${Words} title="Functions" words=${FUNCTIONS} insert=${insert} />
      </details>
    </div>
  `;
}

/** @param {{ title: string, words: readonly Word[], insert: (text: string) => void }} props */
const Words = ({ title, words, insert }) => html`
  <p class="small quiet">${title}</p>
  <ul role="list" class="word-list">
    ${words.map(({ insert: text, words: what }) => html`<li key=${text}><button type="button" class="compact" data-insert=${text} onClick=${() => insert(text)}><code>${text}</code></button> <span class="small quiet">${what}</span></li>`)}
  </ul>
`;
