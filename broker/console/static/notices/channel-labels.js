// Labels for channels and devices.
/** @typedef {import('../../answers.ts').Channel} Channel */

import { nameOf } from '/console/shell/schema-fields.js';
import { moment } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/** @type {Readonly<Record<string, string>>} */
export const EVENTS = {
  call_held: 'Calls that wait',
  access_requested: 'Requests for access',
  registration_waiting: 'Agents that want to register',
  agent_suspended: 'Suspended agents',
  connection_broken: 'Connections that need attention',
  passkey_added: 'Passkeys that were added',
};

/** @param {Pick<Channel, 'status' | 'last_ok_at' | 'last_error'>} channel */
export function stateOf({ status, last_ok_at, last_error }) {
  const worked = last_ok_at ? `Last message ${moment(last_ok_at)}.` : 'No message yet.';
  const why = visibleLine(last_error ?? '');
  // An active channel with an error accepted the last message for some of its recipients only.
  if (status === 'unreadable') return why;
  if (status === 'active') return why === '' ? worked : why;
  return status === 'gone'
    ? `Sending has stopped: ${why} Change it to try again. ${worked}`
    : `The last message was not accepted: ${why} It is retried. ${worked}`;
}

/** @param {Pick<Channel, 'status' | 'rules'>} channel */
export const rulesText = ({ status, rules }) => (status === 'unreadable' ? '' : describeRules(rules));

/** @param {Channel['rules']} rules */
function describeRules({ events, agents, platforms, quiet, remind_minutes }) {
  const parts = [
    events
      ? `Tells: ${events
          .map((event) => EVENTS[event] ?? event)
          .join(', ')
          .toLowerCase()}`
      : 'Tells everything',
    agents && `of ${agents.map(visibleLine).join(', ')}`,
    platforms && `on ${platforms.map(visibleLine).join(', ')}`,
    quiet && `not from ${quiet.from} to ${quiet.to} (${quiet.zone}${quiet.days ? `, ${quiet.days.join(' ')}` : ''})`,
    remind_minutes && `reminder ${remind_minutes} min before expiry`,
  ];
  return `${parts.filter(Boolean).join(', ')}.`;
}

/** @type {Readonly<Record<string, string>>} */
const KINDS = {
  webhook: 'Webhook',
  ntfy: 'ntfy',
  email: 'E-mail',
  slack: 'Slack',
  teams: 'Microsoft Teams',
  telegram: 'Telegram',
};
export const kindName = (/** @type {string} */ kind) => KINDS[kind] ?? nameOf(kind);
