// The bar with the number of selected calls and the actions on them. It floats, so that the list does not move.
import { html } from '/console/html.js';

/**
 * `busy`: the action in flight, in words.
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
