// Reads the owner API with the session cookie. Everything shown is set as text, never as HTML.
const notice = document.getElementById('notice');

async function ask(method, path, body) {
  const response = await fetch(path, {
    method,
    // The header makes the request one that no other site's form or link can send.
    headers: { 'X-Svc-Csrf': '1', ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) {
    location.replace('/console/sign-in');
    throw new Error('signed out');
  }
  if (!response.ok) throw new Error(answer.detail ?? `The broker answered ${response.status}.`);
  return answer;
}

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

const MOVES = { active: ['suspend', 'revoke'], suspended: ['resume', 'revoke'], pending_bind: ['revoke'] };

async function show() {
  const [{ agents }, { rows }] = await Promise.all([ask('GET', '/owner/agents'), ask('GET', '/owner/audit?limit=30')]);
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
      `${names.get(decision.agent_public_id) ?? decision.agent_public_id}: ${decision.method} ${decision.platform_id} ${decision.path ?? ''}`,
      `${decision.scope} · ${decision.reason} · ${new Date(decision.created_at).toLocaleString()}`,
      state(decision.result ?? 'in flight'),
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
