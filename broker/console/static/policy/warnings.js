// The broker's warnings about rules that it accepted, but that may not do what was intended.
import { html } from '/console/html.js';
import { visibleLine } from '/console/visible.js';

/** Warnings of the last save, until the page of the policy shows them. @type {{ id: string, warnings: string[] } | undefined} */
let kept;

/** @param {{ id: string, warnings: string[] }} saved */
export function keepWarnings({ id, warnings }) {
  kept = { id, warnings };
}

/** @param {string} id */
export function takeWarnings(id) {
  const warnings = kept?.id === id ? kept.warnings : [];
  kept = undefined;
  return warnings;
}

/** `id`: the element's id, when the page has several. @param {{ warnings: readonly string[], id?: string }} props */
export function Warnings({ warnings, id = 'warnings' }) {
  if (warnings.length === 0) return null;
  return html`<div class="notice" data-kind="wait" role="status" id=${id}>
    <div>
      <p><strong>Accepted as written, but perhaps not what you meant:</strong></p>
      <ul>${warnings.map((warning) => html`<li key=${warning} class="theirs">${visibleLine(warning)}</li>`)}</ul>
    </div>
  </div>`;
}
