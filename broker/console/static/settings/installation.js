// What runs here, as far as the broker tells owners.
import { html } from '/console/html.js';
import { useOwner } from '/console/shell/owner.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

const SELDOM_MS = 600_000;

export function Installation() {
  const { base_url, sign_in } = useOwner();
  const version = useLoaded('/version', SELDOM_MS).answer;
  return html`<section class="sheet" aria-labelledby="installation">
    <h2 id="installation">This installation</h2>
    <dl class="facts">
      <dt>Version</dt><dd>${version ? `${version.version}${version.sha === 'unknown' ? '' : ` (${version.sha.slice(0, 12)})`}` : '…'}</dd>
      <dt>Address</dt><dd><code class="theirs">${visibleLine(base_url)}</code></dd>
      <dt>Sign-in</dt><dd>${sign_in === 'oidc' ? 'At your identity provider' : 'By passkey or sign-in link'}</dd>
    </dl>
    <p class="small quiet">Its store and backups are seen on its machine: <code>npx agent-broker doctor</code></p>
  </section>`;
}
