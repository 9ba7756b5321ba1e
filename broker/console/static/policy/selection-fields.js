// The fields that select calls: methods, platforms, scopes, endpoints and a condition.
/** @typedef {import('/console/policy/condition-words.js').Word} Word */
/** @typedef {import('/console/policies/effects.js').Selection} Selection */
/** @typedef {import('/console/policy/known.js').Known} Known */
import { html, useLayoutEffect, useMemo, useRef, useState } from '/console/html.js';
import { FUNCTIONS, VARIABLES, WHOLE, wordsFor } from '/console/policy/condition-words.js';
import { endpointOptions, platformOptions, scopeOptions } from '/console/policy/known.js';
import { OptionList, useOptions } from '/console/policy/options.js';
import { PatternField } from '/console/policy/pattern-field.js';
import { Unseen } from '/console/policy/unseen.js';
import { checkedTo } from '/console/shell/fields.js';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * `set` changes some members; members set to undefined are removed.
 *
 * @param {{ id: string, selection: Selection, known: Known, wrongs: (field: string) => string[], set: (to: { [Field in keyof Selection]?: Selection[Field] | undefined }) => void }} props
 */
export function SelectionFields({ id, selection, known, wrongs, set }) {
  const { platforms, scopes, methods, endpoints, when } = selection;
  const ofPlatforms = useMemo(() => platformOptions(known), [known]);
  const ofScopes = useMemo(() => scopeOptions(known, { ...(platforms && { platforms }) }), [known, platforms]);
  const ofEndpoints = useMemo(
    () =>
      endpointOptions(known, {
        ...(platforms && { platforms }),
        ...(scopes && { scopes }),
        ...(methods && { methods }),
      }),
    [known, platforms, scopes, methods],
  );
  const toggled = (/** @type {string} */ method, /** @type {boolean} */ is) => {
    const next = METHODS.filter((one) => (one === method ? is : methods?.includes(one)));
    set({ methods: next.length > 0 ? next : undefined });
  };
  return html`
    <fieldset data-field="methods">
      <legend>Methods</legend>
      <div class="chips">
        ${METHODS.map((method) => html`<label class="chip" key=${method}><input type="checkbox" value=${method} checked=${methods?.includes(method) ?? false} onChange=${checkedTo((is) => toggled(method, is))} />${method}</label>`)}
      </div>
      <p class="small quiet">${methods ? 'Only these. GraphQL and tools are POST.' : 'None chosen: every method.'}</p>
      ${wrongs('methods').map((problem) => html`<p class="wrong" role="alert" key=${problem}>${problem}</p>`)}
    </fieldset>
    <${PatternField} id=${`${id}-platforms`} label="Platforms" any="Every platform" hint="* is any text." values=${platforms} options=${ofPlatforms} problems=${wrongs('platforms')} change=${(/** @type {string[] | undefined} */ to) => set({ platforms: to })} />
    <${PatternField} id=${`${id}-scopes`} label="Scopes" any="Every scope" hint="* is any text, as in crm:*.read." values=${scopes} options=${ofScopes} problems=${wrongs('scopes')} change=${(/** @type {string[] | undefined} */ to) => set({ scopes: to })} />
    <${PatternField} id=${`${id}-endpoints`} label="Endpoints" any="Every endpoint" hint="* is one segment, ** any rest, as in /admin/**." values=${endpoints} options=${ofEndpoints} problems=${wrongs('endpoints')} change=${(/** @type {string[] | undefined} */ to) => set({ endpoints: to })} />
    <${ConditionField} id=${`${id}-when`} value=${when ?? ''} problems=${wrongs('when')} change=${(/** @type {string | undefined} */ to) => set({ when: to })} />
  `;
}

// The field of a condition, with the available variables and functions.
/** @param {{ id: string, value: string, problems: readonly string[], change: (value: string | undefined) => void }} props */
function ConditionField({ id, value, problems, change }) {
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
