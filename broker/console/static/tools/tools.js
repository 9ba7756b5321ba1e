// The tools of the organisation's MCP servers: those that agents can call, and those held back until an owner reviewed them.
/** @typedef {import('../../answers.ts').Tool} Tool */
/** @typedef {import('../../answers.ts').Platform} Platform */
/** @typedef {import('../../answers.ts').Tool} OneTool */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { Failed, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { EFFECT } from '/console/tools/effects.js';
import { visible, visibleLine } from '/console/visible.js';

const INTERVAL_MS = 10_000;
const RANK = { changed: 0, new: 1, accepted: 2 };
/** @type {Record<OneTool['state'], { kind: string, words: string }>} */
const STATE = {
  changed: { kind: 'bad', words: 'Changed: held back' },
  new: { kind: 'wait', words: 'New: held back' },
  accepted: { kind: 'good', words: 'Accepted' },
};

export function ToolServers() {
  const { answer } = useLoaded('/owner/platforms', INTERVAL_MS);
  const servers = answer?.platforms.filter(({ kind }) => kind === 'mcp') ?? [];
  return servers.map((platform) => html`<${ToolServer} key=${platform.platform_id} platform=${platform} />`);
}

/** @param {{ platform: Pick<Platform, 'platform_id' | 'name'> }} props */
export function ToolServer({ platform: { platform_id: id, name } }) {
  const path = /** @type {const} */ (`/owner/platforms/${id}/tools`);
  const { answer, error, reload } = useLoaded(path, INTERVAL_MS);
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

// The review of one tool of an MCP server: the accepted definition beside the offered one; only the shown definition can be accepted.
const written = (/** @type {Tool['accepted']} */ definition) => visible(JSON.stringify(definition, null, 2));

/** @param {{ platform: string, tool: Tool, may: boolean, onClose: () => void, onDone: () => void }} props */
function ReviewTool({ platform, tool, may, onClose, onDone }) {
  const { name, state, accepted, offered, hash } = tool;
  const [effect, setEffect] = useState(/** @type {Tool['effect'] | ''} */ (''));
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const accept = async () => {
    if (!may) return;
    await run(async () => {
      const body = { hash, ...(effect && { effect }) };
      await ask('POST', `/owner/platforms/${platform}/tools/${encodeURIComponent(name)}/accept`, body);
      announce(`${name} is accepted as it is offered.`, 'good');
      onClose();
    });
    onDone();
  };
  return html`<${Dialog} title=${name} onClose=${onClose} onSubmit=${accept}>
    <p>${WORDS[state]} The text below comes from the server: a model reads it as instructions.</p>
    ${state === 'changed' && html`<${Definition} title="Accepted" definition=${accepted} />`}
    <${Definition} title=${state === 'accepted' ? 'Accepted' : 'Offered now'} definition=${offered} />
    ${
      may &&
      html`<p><label for="effect">What it does</label>
        <select id="effect" value=${effect} onChange=${valueTo((chosen) => setEffect(chosen in EFFECT ? /** @type {Tool['effect']} */ (chosen) : ''))}>
          <option value="">${tool.effect_by ? `It ${EFFECT[tool.effect]}, as an owner said` : 'As the server declares it'}</option>
          ${Object.entries(EFFECT).map(([value, words]) => html`<option value=${value}>It ${words}</option>`)}
        </select></p>`
    }
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Close</button>
      ${may && html`<button type="submit" class="primary" id="accept" disabled=${busy || (state === 'accepted' && !effect)}>${state === 'accepted' ? 'Save' : 'Accept as offered'}</button>`}
    </div>
  <//>`;
}

/** @type {Record<Tool['state'], string>} */
const WORDS = {
  changed: 'It differs from what was accepted, so no agent can call it.',
  new: 'It was added after the tools were accepted, so no agent can call it.',
  accepted: 'Agents that are granted its scope can call it.',
};

/** @param {{ title: string, definition: Tool['accepted'] }} props */
const Definition = ({ title, definition }) => html`
  <h3>${title}</h3>
  <pre class="theirs definition" tabindex="0" aria-label=${title}>${written(definition)}</pre>
`;
