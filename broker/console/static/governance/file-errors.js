// The broker's errors about a governance file.
import { Refused } from '/console/api.js';
import { html } from '/console/html.js';
import { visible } from '/console/visible.js';

/** One item per error, with its line. @param {{ problem: Error | undefined }} props */
export function FileErrors({ problem }) {
  if (!problem) return null;
  const { problems } = /** @type {{ problems?: unknown }} */ (problem instanceof Refused ? problem.answer : {});
  return html`<div class="notice" data-kind="bad" role="alert" id="file-wrong"><div>
    <p>${problem.message}</p>
    ${Array.isArray(problems) && html`<ul class="small">${problems.map((one) => html`<li key=${one} class="theirs">${visible(String(one))}</li>`)}</ul>`}
  </div></div>`;
}
