// What is selected, and what can be done with it. It floats: the list stays where it is.
import { html } from '/console/html.js';

/**
 * `busy`: what is under way, in words.
 *
 * @param {{ count: number, busy: string | undefined, ask: (what: 'approve' | 'deny') => void, clear: () => void }} props
 */
export function SelectionBar({ count, busy, ask, clear }) {
  if (busy) return html`<div class="selection sheet" id="selection"><p class="small" role="status">${busy}</p></div>`;
  if (count === 0) return null;
  return html`
    <div class="selection sheet" id="selection" role="region" aria-label="Selected calls">
      <p class="small" role="status">${count} selected</p>
      <div class="buttons">
        <button type="button" class="compact primary" id="approve-selected" onClick=${() => ask('approve')}>Approve…</button>
        <button type="button" class="compact danger" id="deny-selected" onClick=${() => ask('deny')}>Deny…</button>
        <button type="button" class="compact plain" id="deselect" onClick=${clear}>Clear</button>
      </div>
    </div>
  `;
}
