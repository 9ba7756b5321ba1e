// A field for a list of texts or patterns: a button removes each entry, and suggestions complete new ones.
/** @typedef {import('/console/policy/known.js').Option} Option */
import { html, useRef, useState } from '/console/html.js';
import { OptionList, useOptions } from '/console/policy/options.js';
import { valueTo } from '/console/shell/fields.js';
import { visibleLine } from '/console/visible.js';

/**
 * `any`: the meaning of an absent list. `change(undefined)` removes the list.
 *
 * @param {{ id: string, label: string, any: string, hint: string, values: readonly string[] | undefined, options: readonly Option[], problems: readonly string[], change: (values: string[] | undefined) => void }} props
 */
export function PatternField({ id, label, any, hint, values, options, problems, change }) {
  const [text, setText] = useState('');
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const has = values ?? [];
  const search = text.trim().toLowerCase();
  const fitting = options.filter(
    ({ value, words }) => !has.includes(value) && `${value} ${words}`.toLowerCase().includes(search),
  );
  const add = (/** @type {string} */ value) => {
    setText('');
    if (value.trim() !== '' && !has.includes(value.trim())) change([...has, value.trim()]);
  };
  const { pressed, isOpen, active, list, show } = useOptions({ id, options: fitting, take: add });
  const remove = (/** @type {string} */ value) => {
    const left = has.filter((one) => one !== value);
    change(left.length > 0 ? left : undefined);
    input.current?.focus();
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (pressed(event)) return;
    if ((event.key === 'Enter' || event.key === ',') && text.trim() !== '') {
      event.preventDefault();
      add(text);
    }
    const last = has.at(-1);
    if (event.key === 'Backspace' && text === '' && last !== undefined) remove(last);
  };
  // Text that was typed but not confirmed becomes an entry when the focus leaves.
  const left = () => {
    show(false);
    add(text);
  };
  return html`
    <div class="field patterns" data-field=${label.toLowerCase()}>
      <label for=${id}>${label}</label>
      ${
        has.length > 0
          ? html`<ul role="list" class="tokens">
              ${has.map((value) => html`<li key=${value} class="token"><code class="theirs">${visibleLine(value)}</code><button type="button" class="plain" aria-label=${`Take out ${visibleLine(value)}`} onClick=${() => remove(value)}>×</button></li>`)}
            </ul>`
          : html`<p class="small quiet any">${any}</p>`
      }
      <div class="combo">
        <input id=${id} ref=${input} role="combobox" autocomplete="off" autocapitalize="off" spellcheck=${false} maxlength="1000"
          aria-autocomplete="list" aria-expanded=${isOpen} aria-controls=${isOpen ? list.id : null} aria-activedescendant=${active}
          aria-describedby=${`${id}-hint`} aria-invalid=${problems.length > 0 ? true : null}
          value=${text} onInput=${valueTo((value) => {
            setText(value);
            show(true);
          })} onKeyDown=${key} onClick=${() => show(true)} onBlur=${left} />
        ${isOpen && html`<${OptionList} ...${list} label=${label} />`}
      </div>
      <p class="hint" id=${`${id}-hint`}>${hint}</p>
      ${problems.map((problem) => html`<p class="wrong" role="alert" key=${problem}>${problem}</p>`)}
    </div>
  `;
}
