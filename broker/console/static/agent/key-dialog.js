// Issues a bootstrap token with which an agent registers another key: how its key is replaced.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { bindLine } from '/console/new-agent/lines.js';
import { Command } from '/console/shell/command.js';
import { Dialog } from '/console/shell/dialog.js';
import { exactly } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ agent: WholeAgent, onClose: () => void, onDone: () => void }} props */
export function KeyDialog({ agent, onClose, onDone }) {
  const [made, setMade] = useState(
    /** @type {{ bootstrap_token: string, expires_at: string, bind_url: string } | undefined} */ (undefined),
  );
  const { busy, problem, run } = useDoing();
  const name = visibleLine(agent.name);
  const has = agent.key_fingerprint !== null;
  const make = () =>
    run(async () => {
      setMade(
        await ask(
          'POST',
          /** @type {const} */ (`/owner/agents/${agent.agent_id}/bootstrap-token`),
          has ? { rotate: true } : {},
        ),
      );
      onDone();
    });
  if (made)
    return html`<${Dialog} title=${`A new key for ${name}`} onClose=${onClose}>
      <p>Run this command where ${name} runs, before ${exactly(made.expires_at)}. It creates the key there and writes the profile. The command is shown only once.</p>
      <${Command} text=${`npx ${bindLine({ name: agent.name, url: new URL(made.bind_url).origin, token: made.bootstrap_token })}`} />
      <p class="small quiet">Or send the token <code>abt_…</code> in it and a public key to <code class="theirs">${made.bind_url}</code>.</p>
      <div class="buttons"><button type="button" class="primary" onClick=${onClose}>Done</button></div>
    <//>`;
  return html`<${Dialog} title=${`A new key for ${name}?`} onClose=${onClose} onSubmit=${make}>
    <p>You get a token with which the agent brings a new key. It can be used once, within a day. ${has ? 'The current key works until then; after that the key and the children that the agent created with it are refused.' : 'It has no key yet.'} Earlier tokens are no longer accepted.</p>
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="primary" id="make-token" disabled=${busy}>Make a token</button>
    </div>
  <//>`;
}
