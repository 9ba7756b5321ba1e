/** @typedef {import('/console/grants/terms.js').Terms} Terms */
import { listsOn } from '/console/grants/terms.js';
import { TermsFields } from '/console/grants/terms-fields.js';
import { html } from '/console/html.js';
import { Failed, Loading } from '/console/shell/empty.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

/** The grant of an invited agent on one platform; branches can be limited after it has joined. @param {{ platformId: string, terms: Terms, change: (more: Partial<Terms>) => void, drop: () => void }} props */
export function GrantPart({ platformId, terms, change, drop }) {
  const { answer, error, reload } = useLoaded(/** @type {const} */ (`/owner/platforms/${platformId}`), 60_000);
  return html`<section class="grant-part stack" data-platform=${platformId} aria-label=${`What it may do on ${platformId}`}>
    <div class="section-head">
      <h2>On <span class="theirs">${visibleLine(answer?.name ?? platformId)}</span></h2>
      <button type="button" class="compact" onClick=${drop}>Leave out<span class="unseen"> ${platformId}</span></button>
    </div>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!answer && !error && html`<${Loading} />`}
    ${answer && html`<${TermsFields} platform=${answer} terms=${terms} lists=${listsOn(answer).filter((name) => name !== 'refs')} change=${change} />`}
  </section>`;
}
