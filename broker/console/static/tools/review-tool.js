// The review of one tool of an MCP server: the accepted definition beside the offered one; only the shown definition can be accepted.
/** @typedef {import('../../answers.ts').Tool} Tool */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { EFFECT } from '/console/tools/effects.js';
import { visible } from '/console/visible.js';

const written = (/** @type {Tool['accepted']} */ definition) => visible(JSON.stringify(definition, null, 2));

/** @param {{ platform: string, tool: Tool, may: boolean, onClose: () => void, onDone: () => void }} props */
export function ReviewTool({ platform, tool, may, onClose, onDone }) {
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
