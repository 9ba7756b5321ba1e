// A section of an agent's page: a heading, an optional action, and a sheet.
/** @typedef {import('/console/html.js').Children} Children */
import { html, useId } from '/console/html.js';

/**
 * `action`: a button beside the heading.
 *
 * @param {{ id: string, title: string, action?: unknown, children: Children }} props
 */
export function Section({ id, title, action, children }) {
  const heading = useId();
  return html`<section id=${id} aria-labelledby=${heading}>
    <div class="section-head"><h2 id=${heading}>${title}</h2>${action}</div>
    ${children}
  </section>`;
}

/** The sentence that replaces an empty list. @param {{ children: Children }} props */
export const None = ({ children }) => html`<p class="sheet none quiet">${children}</p>`;
