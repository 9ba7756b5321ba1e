/** Deciding a held call by a button in Slack or Telegram: only where every rule that holds it allows that, and only by an owner who may decide. */
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { MaybeRecorded } from '../../broker/audit/audit-unavailable.ts';
import { expectStatus, send } from '../world/agent.ts';
import {
  ANN,
  ANN_ON_TELEGRAM,
  pressInSlack,
  pressInTelegram,
  SIGNING_SECRET,
  slackButtons,
  telegramButtons,
} from '../world/browser/clicks.ts';
import { givenReplica } from '../world/replica.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import {
  type Body,
  SLACK_CHANNEL,
  SLACK_TOKEN,
  startChatServer,
  TELEGRAM_CHAT,
  TELEGRAM_TOKEN,
} from '../world/servers/chat-servers.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { fresh, givenWorld, shared, WRITE } from '../world/world.ts';

const server = shared(() => startChatServer());
beforeEach(() => server.clear());

const HOLDS = { effect: 'require_approval', methods: ['POST'], decide_in: ['ops', 'phone'] };
const RULES = [{ effect: 'allow', methods: ['GET'] }, HOLDS];

describe.each(ONE_STORE)(`buttons on %s${postgresNote}`, (store) => {
  const world = givenWorld(store, () => ({
    AGENT_BROKER_ALLOW_PRIVATE: server.address,
    AGENT_BROKER_LIMIT_FACTOR: '100',
  }));
  const organisation = fresh(() => world.demoOrganisation({ manifest: { base_url: server.url } }));
  const agent = fresh(() => organisation.agent({ rules: RULES }));
  const email = () => organisation.owner.email;

  const add = async (channel: object) => {
    const made = await organisation.ask('POST', '/owner/channels', { server: server.url, ...channel });
    expect(made.status, made.text).toBe(201);
    return made.body as { id: string; clicks_url: string };
  };
  const addSlack = async (more: object = {}) =>
    await add({
      name: 'ops',
      kind: 'slack',
      channel: SLACK_CHANNEL,
      secret: { token: SLACK_TOKEN, signing_secret: SIGNING_SECRET },
      people: { [ANN]: email() },
      ...more,
    });
  const addTelegram = async () =>
    await add({
      name: 'phone',
      kind: 'telegram',
      chat: TELEGRAM_CHAT,
      secret: TELEGRAM_TOKEN,
      people: { [ANN_ON_TELEGRAM]: email() },
    });
  /** Finds the newest message in Slack about a held call; other channels of the same conversation send one, too. */
  const messageOf = async (id: string, is: (message: Body) => unknown = () => true) =>
    await vi.waitUntil(
      () => server.of('chat.postMessage').findLast((one) => JSON.stringify(one).includes(`/approve/${id}`) && is(one)),
      { timeout: 5_000, interval: 10 },
    );
  /** Holds a call, and returns the buttons of its message in Slack. */
  const heldInSlack = async () => {
    const held = await expectStatus(202, agent.act(WRITE));
    const message = await messageOf(held.body.approval_id, slackButtons);
    return { id: String(held.body.approval_id), message, buttons: slackButtons(message)! };
  };
  const read = async (id: string) => (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
  const settled = async (id: string, status: string) => {
    await expect.poll(async () => (await read(id)).status, { interval: 10 }).toBe(status);
    return await read(id);
  };
  const refusals = async () => {
    const { body } = await organisation.ask('GET', '/owner/audit?reason=button_refused');
    return body.rows as Body[];
  };

  test('approves: the call is made once, and row, receipt and message name the person and the channel', async () => {
    const { id: channelId, clicks_url } = await addSlack();
    expect(clicks_url).toBe(`${world.running.baseUrl}/notify/slack/${channelId}`);
    const { id, buttons } = await heldInSlack();
    const answer = await pressInSlack(world, channelId, buttons.approve);
    expect([answer.status, answer.text]).toEqual([200, '']);
    await expect.poll(() => server.of('platform').length, { interval: 10 }).toBe(1);
    await expect.poll(async () => (await read(id)).executed_at, { interval: 10 }).not.toBeNull();
    const seen = await read(id);
    expect(seen).toMatchObject({ status: 'approved', how: 'channel', decided_by: organisation.owner.id });
    for (const row of [seen.audit_ids.decided, seen.audit_ids.replayed]) {
      const { receipt } = (await organisation.ask('GET', `/v1/audit/${row}/receipt`)).body;
      expect(JSON.parse(Buffer.from(receipt.split('.')[1], 'base64url').toString()).approval).toMatchObject({
        decided_by: organisation.owner.id,
        how: 'channel',
        channel: { id: channelId, name: 'ops', kind: 'slack', user: ANN },
      });
    }
    const [edited] = (await server.waitFor('chat.update')) as [Body];
    expect(edited.blocks[1].text.text).toContain(`Approved by ${email()}.`);
    expect(slackButtons(edited)).toBeUndefined();
    // The same click again, and the other button.
    for (const again of [buttons.approve, buttons.deny])
      expect((await pressInSlack(world, channelId, again)).status).toBe(200);
    await expect.poll(async () => (await refusals()).length, { interval: 10 }).toBe(2);
    expect((await refusals())[0]).toMatchObject({ detail: `This call was approved already by ${email()}.` });
    expect(server.of('platform')).toHaveLength(1);
  });

  test('where several people have to approve, the first one is answered that others have to, too', async () => {
    const two = await organisation.agent({ rules: [{ effect: 'allow' }, { ...HOLDS, approvers: 2 }] });
    const { id: channelId } = await addSlack();
    const id = await two.hold(WRITE);
    const message = await messageOf(id, slackButtons);
    expect(JSON.stringify(message)).toContain('Approval needed from 2 people');
    const { approve } = slackButtons(message)!;
    await pressInSlack(world, channelId, approve);
    const [told] = (await server.waitFor('chat.postEphemeral')) as [Body];
    expect(told.text).toBe('You approved this call: 1 of 2 people have. It waits until the others approve, too.');
    expect(await read(id)).toMatchObject({
      status: 'pending',
      approved_before: [{ approved_by: organisation.owner.id, how: 'channel' }],
    });
    expect(await refusals()).toEqual([]);
    const colleague = await organisation.addOwner('approver');
    await organisation.approve(id, {}, colleague);
    expect(await settled(id, 'approved')).toMatchObject({ approvers: { needed: 2, given: 2 } });
  });

  test('decides nothing after a correction, and links to the page', async () => {
    const { id: channelId } = await addSlack();
    const { id, buttons } = await heldInSlack();
    const { request_hash } = await read(id);
    const corrected = await organisation.ask('POST', `/owner/approvals/${id}/correct`, {
      request_hash,
      data: { title: 'another' },
    });
    expect(corrected.status, corrected.text).toBe(200);
    for (const button of [buttons.approve, buttons.deny])
      expect((await pressInSlack(world, channelId, button)).status).toBe(200);
    await expect.poll(async () => (await refusals()).length, { interval: 10 }).toBe(2);
    expect((await refusals())[0]!.detail).toContain('was corrected after');
    expect((await read(id)).status).toBe('pending');
    expect(server.of('platform')).toHaveLength(0);
  });

  test('when the store fails at the commit, the person is told that the call may be decided or not', async () => {
    const { id: channelId } = await addSlack();
    const { buttons } = await heldInSlack();
    const record = vi.spyOn(world.running.services.recorder, 'record');
    onTestFinished(() => record.mockRestore());
    record.mockRejectedValueOnce(new MaybeRecorded(new Error('the connection broke')));
    await pressInSlack(world, channelId, buttons.approve);
    const [told] = (await server.waitFor('chat.postEphemeral')) as [Body];
    expect(told.text).toContain('it is unknown whether it is in force. Follow the link');
  });

  test('denies in Telegram, whose webhook for clicks is registered by the test of the channel', async () => {
    const { id: channelId } = await addTelegram();
    expect((await organisation.ask('POST', `/owner/channels/${channelId}/test`, {})).body).toMatchObject({ ok: true });
    const [hook] = server.of('setWebhook') as [Body];
    expect(hook).toMatchObject({
      url: `${world.running.baseUrl}/notify/telegram/${channelId}`,
      allowed_updates: ['callback_query'],
    });
    const held = await agent.act(WRITE);
    const { deny } = telegramButtons((await server.waitFor('sendMessage', 2))[1]!)!;
    expect((await pressInTelegram(world, channelId, deny, { secret: `${hook.secret_token}x` })).status).toBe(401);
    expect((await pressInTelegram(world, channelId, deny, { secret: '' })).status).toBe(401);
    expect((await pressInTelegram(world, channelId, deny, { user: 5 })).status).toBe(200);
    const [told] = (await server.waitFor('answerCallbackQuery')) as [Body];
    expect(told.text).toContain('not among the people');
    expect((await pressInTelegram(world, channelId, deny, { secret: hook.secret_token })).status).toBe(200);
    expect(await settled(held.body.approval_id, 'denied')).toMatchObject({ how: 'channel' });
    const [edited] = (await server.waitFor('editMessageText')) as [Body];
    expect(edited.text).toContain(`Denied by ${email()}.`);
    expect(server.of('platform')).toHaveLength(0);
  });

  test('removing a Telegram channel removes its webhook, and no other', async () => {
    const registered = async () => {
      const { id } = await addTelegram();
      await organisation.ask('POST', `/owner/channels/${id}/test`, {});
      expect(server.webhook).toBe(`${world.running.baseUrl}/notify/telegram/${id}`);
      return `/owner/channels/${id}`;
    };
    expect((await organisation.ask('DELETE', await registered())).status).toBe(200);
    expect(server.webhook).toBe('');
    await registered();
    const applied = await organisation.ask('POST', '/owner/governance/apply', { text: 'channels: {}\n' });
    expect(applied.status, applied.text).toBe(200);
    expect(server.webhook).toBe('');
    const other = await registered();
    server.webhook = 'https://elsewhere.example/hook';
    expect((await organisation.ask('DELETE', other)).status).toBe(200);
    expect(server.webhook).toBe('https://elsewhere.example/hook');
    const last = await registered();
    server.next = { status: 500, body: { ok: false, error_code: 500, description: 'Internal Server Error' } };
    expect((await organisation.ask('DELETE', last)).status).toBe(200);
    expect((await organisation.ask('GET', '/owner/channels')).body.channels).toEqual([]);
  });

  test('a click is answered even when no request reaches the service', async () => {
    const { id: channelId } = await addSlack();
    const { id, buttons } = await heldInSlack();
    server.hangs = true;
    const began = performance.now();
    expect((await pressInSlack(world, channelId, buttons.approve, { user: 'U0000000009' })).status).toBe(200);
    expect((await pressInSlack(world, channelId, buttons.approve)).status).toBe(200);
    expect(performance.now() - began).toBeLessThan(scaledTimeout(2_000));
    await settled(id, 'approved');
    server.hangs = false;
  });

  test('a decision in the console is written into the message, without buttons', async () => {
    await addSlack();
    const { id } = await heldInSlack();
    await organisation.deny(id);
    const says = ({ blocks }: Body) => blocks[1].text.text.includes(`Denied by ${email()}.`);
    const edited = await vi.waitUntil(() => server.of('chat.update').find(says), { timeout: 5_000, interval: 10 });
    expect(slackButtons(edited)).toBeUndefined();
  });

  test.each([
    ['the agent is', 'agent', () => `agents/${agent.agentId}/suspend`, () => `agents/${agent.agentId}/resume`],
    ['all agents are', 'agent', () => 'agents/suspend-all', () => 'agents/resume-all'],
    ['the platform is', 'platform', () => 'platforms/demo/suspend', () => 'platforms/demo/resume'],
  ])(
    'while %s suspended, approving is refused, and the call can be approved later',
    async (_who, what, suspend, resume) => {
      const { id: channelId } = await addSlack();
      const { id, buttons } = await heldInSlack();
      await organisation.ask('POST', `/owner/${suspend()}`, {});
      await pressInSlack(world, channelId, buttons.approve);
      const [told] = (await server.waitFor('chat.postEphemeral')) as [Body];
      expect(told.text).toContain(`Resume the ${what} first.`);
      expect((await read(id)).status).toBe('pending');
      await organisation.ask('POST', `/owner/${resume()}`, {});
      await pressInSlack(world, channelId, buttons.approve);
      await settled(id, 'approved');
      await expect.poll(() => server.of('platform').length, { interval: 10 }).toBe(1);
    },
  );

  test('while the agent is suspended, a button denies', async () => {
    const { id: channelId } = await addSlack();
    const { id, buttons } = await heldInSlack();
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {});
    await pressInSlack(world, channelId, buttons.deny);
    await settled(id, 'denied');
  });

  test('the message reports that an approved call was not made', async () => {
    await addSlack();
    const { id } = await heldInSlack();
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {});
    const { request_hash } = await read(id);
    await organisation.approve(id, { request_hash });
    const text = () => server.of('chat.update').at(-1)?.blocks[1].text.text;
    await expect.poll(text).toContain(`Approved by ${email()}, but not made: agent_suspended: `);
    expect(server.of('platform')).toHaveLength(0);
  });

  test('a message has no buttons when a rule that holds the call does not allow them', async () => {
    const { id: channelId } = await addSlack();
    const none = async (who: Parameters<typeof organisation.agent>[0], why: string) => {
      const held = await expectStatus(202, (await organisation.agent({ rules: RULES, ...who })).act(WRITE));
      expect(slackButtons(await messageOf(held.body.approval_id)), why).toBeUndefined();
    };
    await none({ rules: [{ ...HOLDS, decide_in: ['phone'] }] }, 'another channel');
    await none({ rules: [HOLDS, { effect: 'require_approval' }] }, 'one rule of two');
    await none({ rules: [{ ...HOLDS, when: 'request.body.nothing == 1' }] }, 'a condition that failed');
    await none({ grants: { demo: { require_approval: 1 } } }, 'the grant');
    await organisation.guardrails([{ name: 'writes', effect: 'require_approval', methods: ['POST'] }]);
    await none({}, 'a guardrail');
    await organisation.guardrails([{ name: 'writes', effect: 'require_approval', decide_in: ['ops'] }]);
    expect((await heldInSlack()).buttons, 'all say so').toBeDefined();
    await organisation.ask('POST', '/owner/organisation', { require_user_verification: true });
    await none({}, 'a verified passkey is wanted');
    await organisation.ask('POST', '/owner/organisation', { require_user_verification: false });
    await organisation.ask('DELETE', `/owner/channels/${channelId}`);
    await addSlack({ secret: SLACK_TOKEN });
    await none({}, 'no signing secret');
  });

  test('requests without a current signature of Slack are ignored', async () => {
    const { id: channelId } = await addSlack();
    const { id, buttons } = await heldInSlack();
    const press = (pressed: object, to = channelId) => pressInSlack(world, to, buttons.approve, pressed);
    const answers = [
      await press({ signingSecret: 'another-secret-of-another-app' }),
      await press({ off: -310 }),
      await press({ off: 310 }),
      await press({ altered: 'payload=%7B%7D' }),
      await press({}, '00000000-0000-4000-8000-000000000000'),
      await press({}, 'nonsense'),
      await send(`${world.running.baseUrl}/notify/slack/${channelId}`, { method: 'POST', body: 'payload=x' }),
      await send(`${world.running.baseUrl}/notify/telegram/${channelId}`, { method: 'POST', body: '{}' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 401));
    expect(new Set(answers.map(({ body }) => body.error.detail ?? body.error.message)).size).toBe(1);
    expect((await press({ body: `payload=${'x'.repeat(300_000)}` })).status).toBe(413);
    // Signed, but about something else.
    for (const body of ['payload=%7B%22type%22%3A%22view_submission%22%7D', 'payload=[', 'x', 'payload=1&payload=2'])
      expect((await press({ body })).status).toBe(200);
    expect((await read(id)).status).toBe('pending');
    expect(await refusals()).toEqual([]);
  });

  test('a signed click of a person who may not decide is refused, explained to the person, and recorded', async () => {
    const viewer = await organisation.addOwner('viewer');
    const gone = await organisation.addOwner('approver');
    const away = await organisation.addOwner('approver');
    const monthAgo = { role_by_groups: 1, last_sign_in_at: Date.now() - 31 * 24 * HOUR_MS };
    await world.db.updateTable('owners').set(monthAgo).where('id', '=', away.id).execute();
    const elsewhere = await world.demoOrganisation();
    const people = {
      ...{ [ANN]: email(), U0000000001: viewer.email, U0000000002: gone.email },
      ...{ U0000000003: away.email, U0000000004: elsewhere.owner.email },
    };
    const { id: channelId } = await addSlack({ people });
    await organisation.ask('DELETE', `/owner/owners/${gone.id}`);
    const other = await addSlack({ name: 'other' });
    const foreign = await elsewhere.ask('POST', '/owner/channels', {
      name: 'ops',
      kind: 'slack',
      channel: SLACK_CHANNEL,
      secret: { token: SLACK_TOKEN, signing_secret: SIGNING_SECRET },
      people: { [ANN]: elsewhere.owner.email },
    });
    const { id, buttons } = await heldInSlack();
    const { approve } = buttons;
    const cases: [string, () => Promise<unknown>, RegExp][] = [
      ['unmapped', () => pressInSlack(world, channelId, approve, { user: 'U0000000009' }), /not among the people/],
      ['viewer', () => pressInSlack(world, channelId, approve, { user: 'U0000000001' }), /role is viewer/],
      ['removed', () => pressInSlack(world, channelId, approve, { user: 'U0000000002' }), /No owner has the address/],
      ['away', () => pressInSlack(world, channelId, approve, { user: 'U0000000003' }), /more than 30 days ago/],
      ['elsewhere', () => pressInSlack(world, channelId, approve, { user: 'U0000000004' }), /No owner has the address/],
      [
        'forged',
        () => pressInSlack(world, channelId, `${approve.slice(0, -8)}AAAAAAAA`),
        /does not belong to this channel/,
      ],
      ['turned', () => pressInSlack(world, channelId, turned(approve)), /does not belong to this channel/],
      ['nonsense', () => pressInSlack(world, channelId, 'approve'), /does not belong to this channel/],
      ['other channel', () => pressInSlack(world, other.id, approve), /does not belong to this channel/],
      ['other place', () => pressInSlack(world, channelId, approve, { place: 'C9999999999' }), /another conversation/],
    ];
    expect((await pressInSlack(world, foreign.body.id, approve)).status).toBe(200);
    const theirs = async () => (await elsewhere.ask('GET', '/owner/audit?reason=button_refused')).body.rows;
    await expect.poll(async () => (await theirs()).length, { interval: 10 }).toBe(1);
    expect((await theirs())[0]).toMatchObject({ approval_id: null, agent_id: null });
    for (const [n, [what, press, why]] of cases.entries()) {
      await press();
      await expect.poll(async () => (await refusals()).length, { message: what, interval: 10 }).toBe(n + 1);
      expect((await refusals())[0]!.detail, what).toMatch(why);
    }
    const told = await server.waitFor('chat.postEphemeral', cases.length);
    expect(told[0]).toMatchObject({ channel: SLACK_CHANNEL, user: 'U0000000009' });
    expect((await refusals()).at(-1)).toMatchObject({
      approval_id: id,
      flags: { click: { user: 'U0000000009', name: 'ops' } },
    });
    expect((await read(id)).status).toBe('pending');
    expect((await pressInSlack(world, channelId, approve)).status).toBe(200);
    await settled(id, 'approved');
  });

  test('a click after a correction, after user verification became required, or after the call expired decides nothing', async () => {
    const { id: channelId } = await addSlack();
    const change = (id: string, to: object) => world.db.updateTable('approvals').set(to).where('id', '=', id).execute();
    const { id, buttons } = await heldInSlack();
    await change(id, { request_hash: 'f'.repeat(64) });
    await pressInSlack(world, channelId, buttons.approve);
    await expect.poll(async () => (await refusals()).length, { interval: 10 }).toBe(1);
    server.clear();
    const second = await heldInSlack();
    await organisation.ask('POST', '/owner/organisation', { require_user_verification: true });
    await pressInSlack(world, channelId, second.buttons.approve);
    await expect.poll(async () => (await refusals()).length, { interval: 10 }).toBe(2);
    expect((await refusals())[0]!.detail).toMatch(/in the console/);
    await organisation.ask('POST', '/owner/organisation', { require_user_verification: false });
    await change(second.id, { expires_at: Date.now() - 1 });
    await pressInSlack(world, channelId, second.buttons.approve);
    await expect.poll(async () => (await refusals()).length, { interval: 10 }).toBe(3);
    expect((await refusals())[0]!.detail).toMatch(/has expired, so it can no longer be decided/);
    // A message whose delivery is no longer on record, as after 40 days.
    await world.db.deleteFrom('notice_deliveries').where('organisation_id', '=', organisation.id).execute();
    await pressInSlack(world, channelId, second.buttons.approve);
    await expect.poll(async () => (await refusals()).length, { interval: 10 }).toBe(4);
    expect((await refusals())[0]!.detail).toMatch(/is no longer on record/);
    expect(server.of('platform')).toHaveLength(0);
  });
});

/** The opposite decision, with the MAC of this one. */
function turned(token: string): string {
  const bytes = Buffer.from(token, 'base64url');
  bytes[1] = 3 - bytes[1]!;
  return bytes.toString('base64url');
}

describe.runIf(STORES.includes('postgres'))(`clicks and replicas on postgres${postgresNote}`, () => {
  const world = givenWorld('postgres', () => ({ AGENT_BROKER_ALLOW_PRIVATE: server.address }));
  const replica = givenReplica(world, { behind: true });
  test('the same click at two replicas, five times each, makes the call once', async () => {
    const organisation = await world.demoOrganisation({ manifest: { base_url: server.url } });
    const agent = await organisation.agent({ rules: RULES });
    const { body } = await organisation.ask('POST', '/owner/channels', {
      name: 'ops',
      kind: 'slack',
      server: server.url,
      channel: SLACK_CHANNEL,
      secret: { token: SLACK_TOKEN, signing_secret: SIGNING_SECRET },
      people: { [ANN]: organisation.owner.email },
    });
    const held = await agent.act(WRITE);
    const { approve } = slackButtons((await server.waitFor('chat.postMessage'))[0]!)!;
    const urls = [world.running.baseUrl, replica.baseUrl];
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => pressInSlack(world, body.id, approve, { baseUrl: urls[n % 2]! })),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const read = async () => (await organisation.ask('GET', `/owner/approvals/${held.body.approval_id}`)).body;
    await expect.poll(async () => (await read()).executed_at, { interval: 20 }).not.toBeNull();
    await server.waitFor('chat.postEphemeral', 9);
    expect(server.of('platform')).toHaveLength(1);
    expect((await organisation.ask('GET', '/owner/audit?reason=approval_approved')).body.rows).toHaveLength(1);
  });
});
