// Facts about the installation, as far as owners may see them.
import { html } from '/console/html.js';
import { Command } from '/console/shell/command.js';
import { useLoaded } from '/console/shell/loaded.js';
import { useOwner } from '/console/shell/owner.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

const SLOW_INTERVAL_MS = 600_000;
const INTERVAL_MS = 15_000;

const STORES = { sqlite: 'SQLite, in its data folder', postgres: 'PostgreSQL' };

export function Installation() {
  const { base_url, sign_in } = useOwner();
  const version = useLoaded('/version', SLOW_INTERVAL_MS).answer;
  const runs = useLoaded('/owner/installation', INTERVAL_MS).answer;
  return html`<section class="sheet" aria-labelledby="installation">
    <h2 id="installation">This installation</h2>
    <dl class="facts">
      <dt>Version</dt><dd>${version ? `${version.version}${version.sha === 'unknown' ? '' : ` (${version.sha.slice(0, 12)})`}` : '…'}</dd>
      <dt>Address</dt><dd><code class="theirs">${visibleLine(base_url)}</code></dd>
      <dt>Sign-in</dt><dd>${sign_in === 'oidc' ? 'At your identity provider' : 'By passkey or sign-in link'}</dd>
      <dt>Store</dt><dd>${runs ? STORES[runs.store] : '…'}</dd>
      <dt>Running</dt><dd id="processes">${
        runs
          ? html`<ul role="list">${runs.processes.map(
              ({ id, version, started_at, answers }) => html`<li key=${id}>
                ${version ?? 'An earlier release'}, since <${Ago} at=${started_at} />${answers && runs.processes.length > 1 && html` <span class="small quiet">(answers you)</span>`}
              </li>`,
            )}</ul>`
          : '…'
      }</dd>
      <dt>Last backup</dt><dd id="last-backup">${runs ? html`<${LastBackup} at=${runs.last_backup_at} />` : '…'}</dd>
    </dl>
    <p class="small quiet">Make a backup on the broker's machine, and check its settings there (<code>npx agent-broker doctor</code>):</p>
    <${Command} text="npx agent-broker backup FILE" />
  </section>`;
}

/** @param {{ at: string | null }} props */
function LastBackup({ at }) {
  if (at === null)
    return html`None with <code>agent-broker backup</code>. Of backups by other means nothing is known here.`;
  return html`<${Ago} at=${at} />`;
}
