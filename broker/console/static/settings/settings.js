// The settings page of the organisation, with facts about the installation.
import { html } from '/console/html.js';
import { Approvals } from '/console/settings/approvals.js';
import { AutoSuspend } from '/console/settings/auto-suspend.js';
import { Installation } from '/console/settings/installation.js';
import { Keys } from '/console/settings/keys.js';
import { Publishing } from '/console/settings/publishing.js';
import { Retention } from '/console/settings/retention.js';
import { Failed, Loading } from '/console/shell/empty.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
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
      <section class="sheet" aria-labelledby="notices-head">
        <h2 id="notices-head">Notices</h2>
        <p>Devices and channels that get notices about held calls.</p>
        <p><${Link} to="/console/notices" id="to-notices-page">Notices<//></p>
      </section>
      ${answer && html`<${Approvals} key=${`${answer.approval_ttl_seconds} ${answer.require_user_verification} ${answer.passkey_deciders}`} organisation=${answer} may=${may} changed=${reload} />`}
      ${answer && html`<${Publishing} published=${answer.publish_identity_documents} may=${may} changed=${reload} />`}
      ${answer && html`<${AutoSuspend} key=${JSON.stringify(answer.auto_suspend)} rule=${answer.auto_suspend} may=${may} changed=${reload} />`}
      ${answer && html`<${Retention} key=${JSON.stringify(answer.retention)} kept=${answer.retention} may=${may} changed=${reload} />`}
      ${
        may &&
        html`<section class="sheet" aria-labelledby="sinks-head">
          <h2 id="sinks-head">Pushing the audit</h2>
          <p>Security tools to which all audit rows are sent as they are recorded.</p>
          <p><${Link} to="/console/audit-sinks" id="to-audit-sinks">Audit sinks<//></p>
        </section>`
      }
      <section class="sheet" aria-labelledby="governance-head">
        <h2 id="governance-head">Governance file</h2>
        <p>All that is governed here as one file: to keep, to review, and to apply.</p>
        <p><${Link} to="/console/governance" id="to-governance">Governance file<//></p>
      </section>
      ${may && html`<${Keys} /><${Installation} />`}
    </div>
  `;
}
