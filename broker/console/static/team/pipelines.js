// Pipelines that plan or apply governance files: not people, but their files take effect like those of an admin.
/** @typedef {import('../../answers.ts').Pipeline} Pipeline */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { Failed } from '/console/shell/empty.js';
import { Question } from '/console/shell/question.js';
import { Ago } from '/console/shell/time.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 15_000;

/** @param {{ may: boolean }} props */
export function Pipelines({ may }) {
  const { answer, error, reload } = useLoaded('/owner/pipelines', EVERY_MS);
  const [removing, setRemoving] = useState(/** @type {Pipeline | undefined} */ (undefined));
  if (error) return html`<${Failed} error=${error} again=${reload} />`;
  if (!answer?.pipelines.length) return null;
  return html`<section aria-labelledby="pipelines-head">
    <h2 id="pipelines-head">Pipelines</h2>
    <p class="quiet small">They plan or apply <a href="/docs/governance#from-a-pipeline" target="_blank" rel="noreferrer">governance files</a> with tokens of their own platform.</p>
    <ul role="list" class="sheet rows" id="pipelines">
      ${answer.pipelines.map(
        (one) => html`<li class="row" key=${one.id} data-pipeline=${one.name}>
          <div class="what">
            <p class="name"><strong class="theirs">${one.name}</strong> <span class="badge" data-kind=${one.role === 'admin' ? 'accent' : ''}>${one.role}</span></p>
            <p class="small quiet">${one.role === 'admin' ? 'Plans, applies and exports' : 'Plans and exports'} as <span class="theirs">${visibleLine(one.subject)}</span> of <span class="theirs">${visibleLine(one.issuer)}</span></p>
            <p class="small quiet">${one.last_used_at ? html`Used last <${Ago} at=${one.last_used_at} />` : 'Never used'}</p>
          </div>
          ${may && html`<div class="buttons"><button type="button" class="compact danger" data-verb="remove" onClick=${() => setRemoving(one)}>Remove…<span class="unseen"> ${one.name}</span></button></div>`}
        </li>`,
      )}
    </ul>
    ${removing && html`<${Remove} pipeline=${removing} onClose=${() => setRemoving(undefined)} onDone=${reload} />`}
  </section>`;
}

/** @param {{ pipeline: Pipeline, onClose: () => void, onDone: () => void }} props */
function Remove({ pipeline: { id, name }, onClose, onDone }) {
  const remove = async () => {
    await ask('DELETE', `/owner/pipelines/${id}`);
    return `The pipeline ${name} is removed.`;
  };
  return html`<${Question} title="Remove this pipeline?" verb="Remove" kind="danger solid" id="remove-pipeline" work=${remove} onClose=${onClose} onDone=${onDone}>
    <p>The next request of <strong class="theirs">${name}</strong> is refused. What it applied stays.</p>
  <//>`;
}
