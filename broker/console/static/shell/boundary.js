// Where an error thrown while drawing ends: the rest of the page, and the button that stops agents, stay.
/** @typedef {import('/console/html.js').Children} Children */
import { html, useErrorBoundary } from '/console/html.js';

/**
 * Shows `children`; where drawing them throws an error, says so in their place, in an element named `tag`. `what`: that which is not shown then,
 * as the sentence begins.
 *
 * @param {{ what: string, tag?: 'div' | 'li', children: Children }} props
 */
export function Boundary({ what, tag = 'div', children }) {
  const [error, again] = useErrorBoundary((thrown) => console.error(thrown));
  if (error === undefined) return children;
  const why = error instanceof Error ? error.message : String(error);
  return html`<${tag} class="notice" data-kind="bad" role="alert">
    <span>${what} cannot be shown, because of an error in the console: ${why}</span>
    <button type="button" class="compact" onClick=${again}>Try again</button>
  <//>`;
}
