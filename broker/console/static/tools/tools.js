// The tools of the organisation's MCP servers: those that agents can call, and those held back until an owner reviewed them.
/** @typedef {import('../../answers.ts').Platform} Platform */
/** @typedef {import('../../answers.ts').Tool} OneTool */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Failed } from '/console/shell/empty.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { useDoing } from '/console/shell/use-doing.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { EFFECT } from '/console/tools/effects.js';
import { ReviewTool } from '/console/tools/review-tool.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 10_000;
const RANK = { changed: 0, new: 1, accepted: 2 };
/** @type {Record<OneTool['state'], { kind: string, words: string }>} */
const STATE = {
  changed: { kind: 'bad', words: 'Changed: held back' },
  new: { kind: 'wait', words: 'New: held back' },
  accepted: { kind: 'good', words: 'Accepted' },
};

export function ToolServers() {
  const { answer } = useLoaded('/owner/platforms', EVERY_MS);
  const servers = answer?.platforms.filter(({ kind }) => kind === 'mcp') ?? [];
  return servers.map((platform) => html`<${ToolServer} key=${platform.platform_id} platform=${platform} />`);
}

/** @param {{ platform: Pick<Platform, 'platform_id' | 'name'> }} props */
export function ToolServer({ platform: { platform_id: id, name } }) {
  const path = /** @type {const} */ (`/owner/platforms/${id}/tools`);
  const { answer, error, reload } = useLoaded(path, EVERY_MS);
  const [looking, setLooking] = useState(/** @type {OneTool | undefined} */ (undefined));
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const may = mayChange(useOwner());
  const tools = answer && [...answer.tools].sort((a, b) => RANK[a.state] - RANK[b.state]);
  const heldBack = tools?.filter(({ state }) => state !== 'accepted').length ?? 0;
  const refresh = async () => {
    await run(async () => {
      await ask('POST', `${path}/refresh`);
      announce('The server listed its tools.', 'good');
    });
    reload();
  };
  return html`
    <section class="tools" data-tools=${id} aria-labelledby=${`tools-${id}`}>
      <div class="head">
        <h2 id=${`tools-${id}`}>Tools of <span class="theirs">${visibleLine(name)}</span>${heldBack > 0 && html` <span class="badge" data-kind="bad">${heldBack} held back</span>`}</h2>
        ${may && html`<button type="button" class="compact refresh" disabled=${busy} onClick=${refresh}>Ask the server now<span class="unseen"> ${name}</span></button>`}
      </div>
      ${(problem ?? error) && html`<${Failed} error=${problem ?? error} again=${problem ? refresh : reload} />`}
      ${tools?.length === 0 && html`<p class="quiet">The list of tools has not been fetched yet. The first list is accepted unchanged.</p>`}
      ${
        tools &&
        tools.length > 0 &&
        html`<ul role="list" class="sheet rows">
          ${tools.map((tool) => html`<${Tool} key=${tool.name} tool=${tool} look=${() => setLooking(tool)} />`)}
        </ul>`
      }
      ${looking && html`<${ReviewTool} platform=${id} tool=${looking} may=${may} onClose=${() => setLooking(undefined)} onDone=${reload} />`}
    </section>
  `;
}

/** @param {{ tool: OneTool, look: () => void }} props */
function Tool({ tool: { name, state, effect, effect_by }, look }) {
  const { kind, words } = STATE[state];
  return html`<li class="row" data-tool=${name} data-state=${state}>
    <div class="what">
      <p class="name"><code class="theirs">${name}</code> <span class="badge" data-kind=${kind}>${words}</span></p>
      <p class="small quiet">It ${EFFECT[effect]}, ${effect_by ? 'an owner says' : 'as the server declares it'}.</p>
    </div>
    <button type="button" class=${`compact look ${state === 'accepted' ? '' : 'primary'}`} onClick=${look}>Look<span class="unseen"> at ${name}</span></button>
  </li>`;
}
