// The rules with a look-back condition that currently apply to an agent because of its earlier calls.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { Section } from '/console/agent/section.js';
import { html } from '/console/html.js';
import { inWords } from '/console/shell/duration.js';
import { Link } from '/console/shell/router.js';
import { exactly, useNow } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/** Renders nothing when no such rule applies. @param {{ agent: WholeAgent }} props */
export function Earlier({ agent: { earlier } }) {
  const now = useNow(15_000);
  if (earlier.length === 0) return null;
  return html`<${Section} id="earlier" title="Because of an earlier call">
    <ul role="list" class="sheet rows">
      ${earlier.map(
        ({ source, rule, audit_id, until }) => html`<li class="row line-row" key=${`${source} ${rule}`}>
          <span class="what theirs"><strong>${visibleLine(rule)}</strong> <span class="quiet">${source}</span><br />
            <span class="quiet">applies for another <time datetime=${until} title=${exactly(until)}>${inWords(Math.max(0, Date.parse(until) - now))}</time> · </span>
            ${audit_id === null ? 'the store was restored' : html`<${Link} to=${`/console/activity?words=${audit_id}`}>the call<//>`}
          </span>
          <span class="badge" data-kind="wait">Applies</span>
        </li>`,
      )}
    </ul>
  <//>`;
}
