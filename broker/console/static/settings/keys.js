// The keys of the installation: the current one, its age, and the command that rotates it.
import { html } from '/console/html.js';
import { Command } from '/console/shell/command.js';
import { Ago } from '/console/shell/time.js';
import { useLoaded } from '/console/shell/use-loaded.js';

const SELDOM_MS = 600_000;

const USES = {
  evidence: { title: 'Receipts', words: 'signs each receipt; a new one is published 2 hours before it signs' },
  log: { title: 'Receipt log', words: 'signs the checkpoints of the log, from the next one on' },
  session: { title: 'Owner sessions', words: 'signs the sessions of owners; those who are signed in stay so' },
  secrets: {
    title: 'Secrets sent by agents',
    words:
      'agents encrypt secrets for it; secrets that were encrypted for the earlier key are accepted for another day',
  },
  master: {
    title: 'Master key',
    words: 'encrypts the keys of everything that is stored encrypted; it is kept on the machine, or in its environment',
  },
};

export function Keys() {
  const keys = useLoaded('/owner/keys', SELDOM_MS).answer?.in_force;
  return html`<section class="sheet" aria-labelledby="keys">
    <h2 id="keys">Keys</h2>
    <p class="small quiet">They belong to the installation, not to one organisation, so its operator rotates them, on its machine. Each command can be repeated safely. <a href="/docs/operations#signing-keys" target="_blank" rel="noreferrer">What to do first</a>.</p>
    <ul role="list" class="keys" id="keys-in-force">
      ${keys?.map(
        ({ use, kid, since }) => html`<li key=${use} data-use=${use}>
          <p><strong>${USES[use].title}</strong> <span class="small quiet">${USES[use].words}</span></p>
          <p class="small"><code class="theirs">${kid}</code>${since && html`, in force since <${Ago} at=${since} />`}</p>
          <${Command} text=${`npx agent-broker keys rotate ${use}`} />
        </li>`,
      )}
    </ul>
  </section>`;
}
