// The organisation's settings that people change in a browser: who may read identity documents, and when agents are stopped.
import { html } from '/console/html.js';
import { AutoSuspend } from '/console/settings/auto-suspend.js';
import { Publishing } from '/console/settings/publishing.js';
import { Failed, Loading } from '/console/shell/empty.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 30_000;

export function SettingsPage() {
  const { answer, error, reload } = useLoaded('/owner/organisation', EVERY_MS);
  const owner = useOwner();
  const may = mayChange(owner);
  return html`
    <div class="page-head"><h1>Settings</h1></div>
    <div class="settings stack">
      <p class="quiet theirs">Settings of the organisation ${visibleLine(owner.organisation.name)}. ${may ? 'Changes are recorded in the activity.' : `Your role is ${owner.role}: an admin can change them.`}</p>
      ${error && html`<${Failed} error=${error} again=${reload} />`}
      ${!answer && !error && html`<${Loading} />`}
      ${answer && html`<${Publishing} published=${answer.publish_identity_documents} may=${may} changed=${reload} />`}
      ${answer && html`<${AutoSuspend} key=${JSON.stringify(answer.auto_suspend)} rule=${answer.auto_suspend} may=${may} changed=${reload} />`}
    </div>
  `;
}
