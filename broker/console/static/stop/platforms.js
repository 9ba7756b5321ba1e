// Stops one platform: every call to it is refused, from any agent.
import { ask } from '/console/api.js';
import { html } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 10_000;

/** Renders nothing when there are no platforms. */
export function Platforms() {
  const { answer, reload } = useLoaded('/owner/platforms', EVERY_MS);
  const announce = useAnnounce();
  const { problem, run } = useDoing();
  const platforms = answer?.platforms ?? [];
  if (platforms.length === 0) return null;
  const change = (/** @type {(typeof platforms)[number]} */ { platform_id, name, suspended }) =>
    run(async () => {
      await ask(
        'POST',
        /** @type {const} */ (`/owner/platforms/${platform_id}/${suspended ? 'resume' : 'suspend'}`),
        {},
      );
      announce(`${visibleLine(name)} ${suspended ? 'takes calls again.' : 'is stopped.'}`, 'good');
      await reload();
    });
  return html`<section>
    <h3>One platform</h3>
    <p class="small quiet">Calls to it are refused for every agent from the next one on; calls to others go on.</p>
    <ul role="list" class="stop-platforms">
      ${platforms.map(
        (one) => html`<li key=${one.platform_id} data-platform=${one.platform_id}>
          <span class="theirs">${visibleLine(one.name)}</span> ${one.suspended && html`<span class="badge" data-kind="bad">Stopped</span>`}
          <button type="button" class=${`compact ${one.suspended ? '' : 'danger'}`} onClick=${() => change(one)}>${one.suspended ? 'Resume' : 'Stop'}<span class="unseen"> ${one.name}</span></button>
        </li>`,
      )}
    </ul>
    <${Problem} problem=${problem} />
  </section>`;
}
