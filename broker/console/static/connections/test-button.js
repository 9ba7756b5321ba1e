/** @typedef {import('../../answers.ts').Connection} Connection */
import { ask } from '/console/api.js';
import { html } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/**
 * Tests the credential with a harmless request to the platform. `tested()` is called when the result is stored.
 *
 * @param {{ connection: Connection, tested: () => void }} props
 */
export function TestButton({ connection: { id, label }, tested }) {
  const announce = useAnnounce();
  const { busy, problem, run } = useDoing();
  const name = visibleLine(label);
  const test = () =>
    run(async () => {
      const { ok, detail } = await ask('POST', `/owner/connections/${id}/test`, {});
      // The row shows the result, too; this announcement is for screen readers.
      announce(`“${name}”: ${detail}`, ok ? 'good' : 'wait');
      tested();
    });
  return html`<button type="button" class="compact test" aria-disabled=${busy} onClick=${test}>
      ${busy ? 'Testing…' : 'Test'}<span class="unseen"> ${name}</span>
    </button>
    <${Problem} problem=${problem} />`;
}
