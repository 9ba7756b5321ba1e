// The key facts of a call in a few lines, repeated in the confirmation, since the dialog covers the request.
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
/** @typedef {import('/console/approve/held.js').Waits} Waits */
import { html } from '/console/html.js';
import { CallTitle } from '/console/request-view/call-title.js';
import { changedTexts, counted, describeUpload } from '/console/request-view/text.js';
import { oddities, oddRecipient, visibleLine } from '/console/visible.js';

const MAX_MEMBERS = 6;
const MAX_RECIPIENTS = 3;
const MAX_LENGTH = 90;

/** Joins a text of several lines into one: each break is marked, as in the view of the complete request. */
const inOneLine = (/** @type {string} */ text) =>
  text
    .split(/\r\n|\n/)
    .map(visibleLine)
    .join(' ↵ ');

const cut = (/** @type {string} */ text) => (text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text);

/**
 * Returns a member's value on one line; members of an object or array are counted.
 *
 * @param {unknown} value
 */
function valueInShort(value) {
  if (Array.isArray(value)) return counted(value.length, 'item');
  if (typeof value === 'object' && value !== null) return counted(Object.keys(value).length, 'member');
  return cut(typeof value === 'string' ? value : JSON.stringify(value));
}

/**
 * Returns the first members of a body, simple values first, and how many more there are.
 *
 * @param {unknown} body
 * @returns {{ members: [string, unknown][], more: number }}
 */
function membersOf(body) {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return { members: body === null ? [] : [['body', body]], more: 0 };
  const all = Object.entries(body);
  const parts = (/** @type {[string, unknown]} */ [, value]) => Number(typeof value === 'object' && value !== null);
  const members = all.sort((a, b) => parts(a) - parts(b)).slice(0, MAX_MEMBERS);
  return { members, more: all.length - members.length };
}

/** @param {{ held: HeldCall | Waits }} props */
export function KeyFacts({ held }) {
  const { request } = held;
  const changed = changedTexts(held);
  const { members, more } = membersOf(request?.upload ? describeUpload(request.upload) : (request?.body ?? null));
  const recipients = request?.recipients ?? [];
  const odd = [...recipients.flatMap(oddRecipient), ...oddities(request?.endpoint ?? '')];
  return html`<div class="key-facts">
    <p class="what-call"><${CallTitle} held=${held} /></p>
    ${request && html`<p class="small"><code class="theirs">${visibleLine(request.method)} ${visibleLine(cut(request.endpoint))}</code></p>`}
    ${
      (members.length > 0 || recipients.length > 0) &&
      html`<dl class="facts small">
        ${
          recipients.length > 0 &&
          html`<dt>Recipients</dt><dd class="theirs">${recipients.slice(0, MAX_RECIPIENTS).map(cut).map(visibleLine).join(', ')}${
            recipients.length > MAX_RECIPIENTS && ` and ${recipients.length - MAX_RECIPIENTS} more`
          }</dd>`
        }
        ${members.map(
          ([name, value]) =>
            html`<dt class="theirs">${visibleLine(cut(name))}</dt><dd class="theirs">${inOneLine(valueInShort(value))}</dd>`,
        )}
      </dl>`
    }
    ${changed.map((text) => html`<p class="odd small" key=${text}>${visibleLine(text)}</p>`)}
    ${more > 0 && html`<p class="quiet small">And ${counted(more, 'more member')} of the body.</p>`}
    ${odd.length > 0 && html`<p class="odd small"><strong>Look closely.</strong> ${odd.slice(0, 2).join(' ')}</p>`}
  </div>`;
}
