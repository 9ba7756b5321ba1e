// Reads the owner API with the session cookie. Everything shown is set as text, never as HTML.
import { ask } from '/console/api.js';
import { visible } from '/console/visible.js';

const notice = document.getElementById('notice');

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function row(title, detail, ...actions) {
  const made = element('div', undefined, { class: 'row' });
  const words = element('div');
  words.append(element('div', title), element('code', detail));
  const side = element('div', undefined, { class: 'actions' });
  side.append(...actions);
  made.append(words, side);
  return made;
}

const state = (kind) => element('span', kind, { class: 'state', 'data-kind': kind });

function moveButton(agent, verb) {
  const button = element('button', verb[0].toUpperCase() + verb.slice(1), { type: 'button' });
  button.addEventListener('click', async () => {
    if (verb === 'revoke' && !confirm(`Stop ${agent.name} for good?`)) return;
    button.disabled = true;
    try {
      await ask('POST', `/owner/agents/${agent.agent_id}/${verb}`, {});
      notice.textContent = '';
    } catch (error) {
      notice.textContent = error.message;
    }
    await show();
  });
  return button;
}

/** What stays open, and what is being read, while the page refreshes. */
const opened = new Map();

function fact(name, text) {
  const made = element('p', undefined, { class: 'fact' });
  made.append(element('span', name, { class: 'quiet' }), document.createTextNode(` ${visible(text)}`));
  return made;
}

function whatBecame(verb, answer) {
  if (verb === 'deny') return 'Denied; the call is never made.';
  if (answer.execution_error) return `Approved, but not made: ${visible(answer.execution_error)}`;
  return answer.executed_at
    ? `Approved and made: ${answer.result_summary ?? 'the platform answered'}.`
    : 'Approved; the call is under way.';
}

/** The exact request: nothing of it is hidden, and the approval is of just this one. */
function details(held, { request }) {
  const box = element('div', undefined, { class: 'details' });
  if (!request) {
    box.append(element('p', 'The stored request cannot be read. Deny it; the agent may ask again.'));
    return box;
  }
  box.append(
    fact('Sends', `${request.method} ${held.platform} ${request.endpoint}`),
    fact('Held because', held.held_because.detail ?? held.held_because.reason),
    fact('Recipients', request.recipients.length > 0 ? request.recipients.join(', ') : 'none named'),
  );
  if (Object.keys(request.headers).length > 0) box.append(fact('Headers', JSON.stringify(request.headers)));
  if (request.body !== null) box.append(element('pre', visible(JSON.stringify(request.body, null, 2))));
  if (held.reason) box.append(fact('In the agent’s own words:', `“${held.reason}”`));
  box.append(fact('Time left', `${Math.ceil(held.expires_in_seconds / 60)} min`));
  for (const verb of ['approve', 'deny']) {
    const button = element('button', verb === 'approve' ? 'Approve' : 'Deny', { type: 'button', class: verb });
    button.addEventListener('click', async () => {
      button.disabled = true;
      try {
        const answer = await ask('POST', `/owner/approvals/${held.approval_id}/${verb}`, {
          request_hash: held.request_hash,
        });
        notice.textContent = whatBecame(verb, answer);
      } catch (error) {
        notice.textContent = error.message;
      }
      opened.delete(held.approval_id);
      await refresh();
    });
    box.append(button);
  }
  return box;
}

function heldRow(held) {
  const look = element('button', opened.has(held.approval_id) ? 'Close' : 'Look', { type: 'button' });
  const made = row(
    `${visible(held.agent.name)}: ${held.method} ${held.platform} ${visible(held.path)}`,
    `${held.scope} · ${new Date(held.created_at).toLocaleString()}`,
    look,
  );
  look.addEventListener('click', async () => {
    if (!opened.delete(held.approval_id)) {
      const whole = await ask('GET', `/owner/approvals/${held.approval_id}`).catch((error) => {
        notice.textContent = error.message;
      });
      if (whole) opened.set(held.approval_id, whole);
    }
    await refresh();
  });
  if (opened.has(held.approval_id)) made.append(details(held, opened.get(held.approval_id)));
  return made;
}

const EVENTS = { approval_approved: 'approved', approval_denied: 'denied' };
const MOVES = { active: ['suspend', 'revoke'], suspended: ['resume', 'revoke'], pending_bind: ['revoke'] };

// Buttons must not move under a finger or lose the keyboard's place: the list is drawn anew only when it differs.
let drawn = '';
function shownBefore(approvals) {
  const now = JSON.stringify([approvals.map((held) => held.approval_id), [...opened.keys()]]);
  const same = now === drawn;
  drawn = now;
  return same;
}

async function show() {
  const [{ approvals }, { agents }, { rows }] = await Promise.all([
    ask('GET', '/owner/approvals?status=pending'),
    ask('GET', '/owner/agents'),
    ask('GET', '/owner/audit?limit=30'),
  ]);
  if (!shownBefore(approvals))
    document
      .getElementById('held')
      .replaceChildren(
        ...(approvals.length
          ? approvals.map(heldRow)
          : [element('p', 'Nothing waits for a decision.', { class: 'notice quiet' })]),
      );
  const agentRows = agents.map((agent) =>
    row(
      agent.name,
      agent.agent_id,
      state(agent.status),
      ...(MOVES[agent.status] ?? []).map((verb) => moveButton(agent, verb)),
    ),
  );
  document
    .getElementById('agents')
    .replaceChildren(
      ...(agentRows.length ? agentRows : [element('p', 'There are no agents yet.', { class: 'notice quiet' })]),
    );
  const names = new Map(agents.map((agent) => [agent.agent_id, agent.name]));
  const decisionRows = rows.map((decision) =>
    row(
      visible(
        `${names.get(decision.agent_public_id) ?? decision.agent_public_id}: ${decision.method} ${decision.platform_id} ${decision.path ?? ''}`,
      ),
      `${decision.scope} · ${decision.reason} · ${new Date(decision.created_at).toLocaleString()}`,
      state(decision.result ?? EVENTS[decision.reason] ?? 'in flight'),
    ),
  );
  document
    .getElementById('decisions')
    .replaceChildren(
      ...(decisionRows.length ? decisionRows : [element('p', 'Nothing was decided yet.', { class: 'notice quiet' })]),
    );
}

document.getElementById('sign-out').addEventListener('click', async () => {
  await ask('POST', '/owner/sign-out', {}).catch(() => {});
  location.replace('/console/sign-in');
});

const refresh = () =>
  show().catch((error) => {
    notice.textContent = error.message;
  });
refresh();
setInterval(() => document.visibilityState === 'visible' && refresh(), 5_000);
