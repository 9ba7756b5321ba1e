// The sentence that describes a call: words of a template, and values of the request, laid out as text.
/** @typedef {import('../../answers.ts').HeldCall['sentence']} Said */
import { html } from '/console/html.js';

/**
 * `sentence`: from the broker; its values are already safe to display.
 *
 * @param {{ sentence: Pick<Said, 'parts'> }} props
 */
export const Sentence = ({ sentence: { parts } }) => html`<span class="sentence">${parts.map(partOf)}</span>`;

/** @param {Said['parts'][number]} part */
function partOf(part) {
  if ('text' in part) return part.text;
  const value = part.quoted ? `“${part.value}”` : part.value;
  const note = part.note && html` <span class="note">(${part.note})</span>`;
  return part.strong
    ? html`<strong class="theirs">${value}</strong>${note}`
    : html`<span class="theirs">${value}</span>${note}`;
}
