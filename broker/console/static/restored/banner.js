// The banner on every page after a restore: no call is made until the restored store was reviewed.
/** @typedef {import('../../answers.ts').Organisation} Organisation */
import { html } from '/console/html.js';
import { Link } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';

const PAGE = '/console/restored';

/** @param {{ restored: Organisation['restored'], here: string }} props */
export function RestoredBanner({ restored, here }) {
  if (!restored) return null;
  return html`<div class="notice" data-kind="bad" role="status" id="store-restored">
    <span><strong>Restored from a backup</strong>, <${Ago} at=${restored.at} />. No call is made before an admin has reviewed it.</span>
    ${here !== PAGE && html`<${Link} to=${PAGE} class="button compact" id="to-restored">Review…<//>`}
  </div>`;
}
