// How much of the limits of the rules in force an agent has used.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { Section } from '/console/agent/section.js';
import { html } from '/console/html.js';
import { limitOf } from '/console/policies/effects.js';
import { inWords } from '/console/shell/duration.js';
import { exactly, useNow } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/** Renders nothing when no rule has a limit. @param {{ agent: WholeAgent }} props */
export function Limits({ agent: { limits } }) {
  const now = useNow(15_000);
  if (limits.length === 0) return null;
  return html`<${Section} id="limits" title="Limits">
    <ul role="list" class="sheet rows">
      ${limits.map((limit) => {
        const { source, rule, most, used, resets_at } = limit;
        return html`<li class="row line-row" key=${`${source} ${rule}`}>
          <span class="what theirs"><strong>${visibleLine(rule)}</strong> <span class="quiet">${source}</span><br />
            ${used} of ${visibleLine(limitOf(limit))}
            <span class="quiet"> · resets <time datetime=${resets_at} title=${exactly(resets_at)}>in ${inWords(Math.max(0, Date.parse(resets_at) - now))}</time></span>
          </span>
          ${used >= most && html`<span class="badge" data-kind="wait">Used up</span>`}
        </li>`;
      })}
    </ul>
  <//>`;
}
