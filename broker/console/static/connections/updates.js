// Built-in platforms whose manifest is from an earlier release: what an update changes, and the update itself.
/** @typedef {import('../../answers.ts').Platform} Platform */
/** @typedef {{ version: number, changes: readonly string[], warnings: readonly string[] }} Tried */
import { ask } from '/console/api.js';
import { Changes } from '/console/connections/manifest.js';
import { html, useEffect, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { Loading } from '/console/shell/empty.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

/** Renders nothing when no update exists. */
export function Updates() {
  const { answer, reload } = useLoaded('/owner/platforms', 600_000);
  const [looking, setLooking] = useState(/** @type {Platform | undefined} */ (undefined));
  const waiting = answer?.platforms.filter((one) => one.update_available) ?? [];
  if (waiting.length === 0) return null;
  return html`<section class="sheet stack" aria-labelledby="updates-head" id="updates">
    <h2 id="updates-head">Updates of platforms</h2>
    <p class="quiet">This release of the broker has newer manifests of these platforms than they were connected with. Nothing changes until you apply an update.</p>
    <ul role="list" class="rows">
      ${waiting.map(
        (one) =>
          html`<li key=${one.platform_id} class="row"><span><strong class="theirs">${visibleLine(one.name)}</strong>${one.name !== one.platform_id && html` <span class="quiet small theirs">${one.platform_id}</span>`}</span>
            <button type="button" class="compact" data-update=${one.platform_id} onClick=${() => setLooking(one)}>Show what changes</button></li>`,
      )}
    </ul>
    ${looking && html`<${Update} platform=${looking} onClose=${() => setLooking(undefined)} onDone=${reload} />`}
  </section>`;
}

/** @param {{ platform: Platform, onClose: () => void, onDone: () => void }} props */
function Update({ platform, onClose, onDone }) {
  const { platform_id, name } = platform;
  const [tried, setTried] = useState(/** @type {Tried | undefined} */ (undefined));
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const address = /** @type {const} */ (`/owner/platforms/${platform_id}`);
  const look = () =>
    run(async () => {
      const { version } = await ask('GET', address);
      setTried(await ask('POST', `${address}/update`, { version, dry_run: true }));
    });
  const update = () =>
    run(async () => {
      if (!tried) return;
      const { version } = await ask('POST', `${address}/update`, { version: tried.version });
      announce(`“${visibleLine(name)}” has version ${version} of its manifest.`, 'good');
      onDone();
      onClose();
    });
  useEffect(() => {
    look();
  }, [platform_id]);
  return html`<${Dialog} title=${`Update ${visibleLine(name)}?`} onClose=${onClose} onSubmit=${update}>
    ${tried && html`<${Changes} ...${tried} />`}
    ${!tried && !problem && html`<${Loading} />`}
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      ${problem && html`<button type="button" id="look-again" onClick=${look} disabled=${busy}>Look again</button>`}
      <button type="submit" class="primary" id="update-platform" disabled=${busy || !tried || problem !== undefined}>Update</button>
    </div>
  <//>`;
}
