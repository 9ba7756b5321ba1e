// Limits a rendering error to one part of the page: the rest, with the button that stops agents, stays.
/** @typedef {import('/console/html.js').Children} Children */
import { html, useErrorBoundary } from '/console/html.js';

/**
 * Renders `children`; when that throws, shows an error in their place, in an element named `tag`. `what`: the part that is not shown then, as the
 * start of the sentence.
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
