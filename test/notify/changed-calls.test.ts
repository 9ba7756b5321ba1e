/** Messages about a held call that several people have to approve, or that was corrected, are updated while the call waits. */
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { takeLease } from '../../broker/store/leases.ts';
import { expectStatus } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import {
  ANN,
  ANN_ON_TELEGRAM,
  pressInSlack,
  pressInTelegram,
  SIGNING_SECRET,
  slackButtons,
  telegramButtons,
} from '../world/browser/clicks.ts';
import { type ChannelServer, startChannelServer } from '../world/servers/channel-server.ts';
import {
  type Body,
  SLACK_CHANNEL,
  SLACK_TOKEN,
  startChatServer,
  TELEGRAM_CHAT,
  TELEGRAM_TOKEN,
  WORKFLOW_PATH,
} from '../world/servers/chat-servers.ts';
import { type Mail, startMailServer } from '../world/servers/mail-server.ts';
import { startPushService, subscribe } from '../world/servers/push-service.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { fresh, givenWorld, shared, startWorld, WRITE } from '../world/world.ts';

const BOB = 'U0000000001';
const rules = (approvers: number) => [
  { effect: 'allow' },
  { effect: 'require_approval', methods: ['POST'], approvers, decide_in: ['ops', 'phone'] },
];

const chats = shared(() => startChatServer());
const hooks = shared(() => startChannelServer());
let mail: { port: number; mails: Mail[] };
beforeAll(async () => {
  mail = await startMailServer('unused', { disabledCommands: ['STARTTLS'] });
});
beforeEach(() => {
  chats.clear();
  hooks.seen.length = 0;
  hooks.answer = (_request, response) => response.writeHead(204).end();
  mail.mails.length = 0;
});

describe.each(ONE_STORE)(`messages about a call that has changed on %s${postgresNote}`, (store) => {
  const world = givenWorld(store, () => ({
    AGENT_BROKER_ALLOW_PRIVATE: [chats.address, hooks.address, `localhost:${mail.port}`].join(','),
    AGENT_BROKER_LIMIT_FACTOR: '100',
  }));
  const push = shared(() => startPushService(world));
  const organisation = fresh(() => world.demoOrganisation({ manifest: { base_url: chats.url } }));
  const ann = fresh(() => organisation.addOwner('approver'));
  const bob = fresh(() => organisation.addOwner('approver'));
  const carl = fresh(() => organisation.addOwner('admin'));
  const agent = fresh(() => organisation.agent({ name: 'triage', rules: rules(2) }));
  const read = async (id: string) => (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
  const approve = async (id: string, by = ann, body: object = {}) =>
    await expectStatus(200, organisation.approve(id, body, by));
  const correct = async (id: string, title: string) => {
    const { request_hash } = await read(id);
    const body = { request_hash, data: { title } };
    await expectStatus(200, organisation.ask('POST', `/owner/approvals/${id}/correct`, body, carl));
  };
  const add = async (channel: object) =>
    (await expectStatus(201, organisation.ask('POST', '/owner/channels', channel))).body as { id: string };
  const addHook = (more: object = {}) => add({ name: 'hook', kind: 'webhook', url: `${hooks.url}/hook`, ...more });
  const addMail = (to: string[]) => {
    const server = { host: 'localhost', port: mail.port, security: 'none' };
    return add({ name: 'mail', kind: 'email', ...server, from: 'broker@acme.example', to });
  };
  const addSlack = () =>
    add({
      name: 'ops',
      kind: 'slack',
      server: chats.url,
      channel: SLACK_CHANNEL,
      secret: { token: SLACK_TOKEN, signing_secret: SIGNING_SECRET },
      people: { [ANN]: ann.email, [BOB]: bob.email },
    });
  const outboxIsEmpty = () =>
    expect
      .poll(async () => {
        const notices = await world.db
          .selectFrom('notices')
          .select('id')
          .where('organisation_id', '=', organisation.id)
          .execute();
        const due = await world.db
          .selectFrom('notice_deliveries')
          .select('id')
          .where('organisation_id', '=', organisation.id)
          .where('state', '=', 'due')
          .where('due_at', '<=', world.running.broker.clock())
          .execute();
        return [...notices, ...due];
      })
      .toEqual([]);
  const edits = async (says: string) =>
    await vi.waitUntil(() => chats.of('chat.update').find((one) => JSON.stringify(one).includes(says)), {
      timeout: 5_000,
      interval: 10,
    });

  test('in Slack the message says who approved, and its buttons remain: the next person decides with them', async () => {
    const { id: channelId } = await addSlack();
    const id = await agent.hold(WRITE);
    const [first] = (await chats.waitFor('chat.postMessage')) as [Body];
    await pressInSlack(world, channelId, slackButtons(first)!.approve);
    const edited = await edits(`Approved by ${ann.email}; 1 more person has to approve.`);
    expect(edited.blocks[0].text.text).toBe('Approval needed from 1 more person');
    expect(edited.ts).toBe([...chats.messages.keys()][0]);
    // Unchanged, so that a click is valid that was made on the message before it was updated.
    expect(slackButtons(edited)).toEqual(slackButtons(first));
    await pressInSlack(world, channelId, slackButtons(edited)!.approve, { user: BOB });
    const over = await edits(`Approved by ${ann.email}, ${bob.email}.`);
    expect(slackButtons(over)).toBeUndefined();
    expect(JSON.stringify(over)).not.toContain('has to approve');
    expect(await read(id)).toMatchObject({ status: 'approved', how: 'channel' });
    expect(chats.of('chat.postMessage')).toHaveLength(1);
  });

  test('in Telegram, too', async () => {
    const { id: channelId } = await add({
      name: 'phone',
      kind: 'telegram',
      server: chats.url,
      chat: TELEGRAM_CHAT,
      secret: TELEGRAM_TOKEN,
      people: { [ANN_ON_TELEGRAM]: bob.email },
    });
    await expectStatus(200, organisation.ask('POST', `/owner/channels/${channelId}/test`, {}));
    const [hook] = chats.of('setWebhook') as [Body];
    const id = await agent.hold(WRITE);
    await chats.waitFor('sendMessage', 2);
    await approve(id);
    const [edited] = (await chats.waitFor('editMessageText')) as [Body];
    expect(edited.text).toMatch(
      /^Approval needed from 1 more person\n\nApproved by .*; 1 more person has to approve\.\n/,
    );
    await pressInTelegram(world, channelId, telegramButtons(edited)!.approve, { secret: hook.secret_token });
    await chats.waitFor('editMessageText', 2);
    expect(await read(id)).toMatchObject({ status: 'approved', decided_by: bob.id });
  });

  test('a webhook gets an event for each approval before the last', async () => {
    await addHook();
    const id = await (await organisation.agent({ rules: rules(3) })).hold(WRITE);
    await hooks.waitFor(1);
    await approve(id, ann);
    await hooks.waitFor(2);
    await approve(id, bob);
    await hooks.waitFor(3);
    await approve(id, carl);
    await hooks.waitFor(4);
    await outboxIsEmpty();
    const all = hooks.came();
    expect(all.map(({ type, data }) => [type, data.outcome ?? data.title, data.progress, data.approvers])).toEqual([
      ['call_held.opened', 'Approval needed from 3 people', [], { needed: 3, approved_by: [] }],
      [
        'call_held.updated',
        'Approval needed from 2 more people',
        [`Approved by ${ann.email}; 2 more people have to approve`],
        { needed: 3, approved_by: [ann.email] },
      ],
      [
        'call_held.updated',
        'Approval needed from 1 more person',
        [`Approved by ${ann.email}, ${bob.email}; 1 more person has to approve`],
        { needed: 3, approved_by: [ann.email, bob.email] },
      ],
      ['call_held.outcome', `Approved by ${ann.email}, ${bob.email}, ${carl.email}`, [], null],
    ]);
    expect(new Set(all.map((one) => one.id)).size).toBe(4);
  });

  test('one more mail and one more card, when the approval of one person is missing; no mail to those who approved', async () => {
    await addMail([ann.email.toUpperCase(), bob.email, carl.email]);
    await add({ name: 'teams', kind: 'teams', secret: `${chats.url}${WORKFLOW_PATH}` });
    const id = await (await organisation.agent({ rules: rules(3) })).hold(WRITE);
    await expect.poll(() => mail.mails.length).toBe(1);
    await chats.waitFor('workflow');
    await approve(id, ann);
    await outboxIsEmpty();
    expect([mail.mails.length, chats.of('workflow').length]).toEqual([1, 1]);
    await approve(id, bob);
    await expect.poll(() => mail.mails.length).toBe(2);
    await chats.waitFor('workflow', 2);
    expect(mail.mails[1]!.to).toEqual([carl.email]);
    expect(mail.mails[1]!.text).toContain('Subject: Approval needed from 1 more person: ');
    expect(JSON.stringify(chats.of('workflow')[1])).toContain('1 more person has to approve.');
    await approve(id, carl);
    await outboxIsEmpty();
    expect([mail.mails.length, chats.of('workflow').length]).toEqual([2, 2]);
  });

  test('a mail whose recipients have all approved is not sent', async () => {
    await addMail([ann.email]);
    const id = await agent.hold(WRITE);
    await expect.poll(() => mail.mails.length).toBe(1);
    await approve(id, ann);
    await outboxIsEmpty();
    expect(mail.mails).toHaveLength(1);
  });

  test('on devices the notification is replaced, except for those of people who approved, who get no reminder either', async () => {
    push.pushed.length = 0;
    const [anns, bobs] = [subscribe(push), subscribe(push)];
    for (const [by, { json }] of [
      [ann, anns],
      [bob, bobs],
    ] as const) {
      const device = { ...json, device_name: 'Phone', rules: { remind_minutes: 30 } };
      await expectStatus(201, organisation.ask('POST', '/owner/push-subscriptions', device, by));
    }
    const id = await agent.hold(WRITE);
    await push.waitFor(2);
    await approve(id, ann);
    await push.waitFor(3);
    world.clock.skewMs = (24 * 60 - 29) * 60_000;
    await push.waitFor(4);
    await outboxIsEmpty();
    const after = push.pushed.slice(2);
    expect(after.map(({ path }) => bobs.json.endpoint.endsWith(path))).toEqual([true, true]);
    expect(after.map(({ body }) => bobs.read(body))).toMatchObject([
      { tag: id, step: 'update', title: 'Approval needed from 1 more person' },
      { tag: id, step: 'reminder', progress: [`Approved by ${ann.email}; 1 more person has to approve`] },
    ]);
    expect(after[0]!.headers).toMatchObject({ urgency: 'normal', topic: push.pushed[0]!.headers.topic });
  });

  test('a correction is written into the message, which has no buttons any more', async () => {
    await addSlack();
    const one = await organisation.agent({ rules: [{ effect: 'allow' }, { ...rules(2)[1], approvers: 1 }] });
    const id = await one.hold(WRITE);
    const [first] = (await chats.waitFor('chat.postMessage')) as [Body];
    expect(slackButtons(first)).toBeDefined();
    await correct(id, 'another title');
    const edited = await edits(`Corrected by ${carl.email}.`);
    expect(slackButtons(edited)).toBeUndefined();
    expect(edited.blocks[0].text.text).toBe('Approval needed');
    await outboxIsEmpty();
    expect(chats.of('chat.postMessage')).toHaveLength(1);
  });

  test('a correction that withdraws approvals is another notice, with buttons of its own', async () => {
    const { id: channelId } = await addSlack();
    await addMail([ann.email, bob.email]);
    await addHook({ agents: ['triage'], platforms: ['demo'], remind_minutes: 30 });
    const id = await agent.hold(WRITE);
    await hooks.waitFor(1);
    await chats.waitFor('chat.postMessage');
    await approve(id, ann);
    await hooks.waitFor(2);
    await expect.poll(() => mail.mails.length).toBe(2);
    await correct(id, 'another title');
    const [first, again] = (await chats.waitFor('chat.postMessage', 2)) as [Body, Body];
    const says = `Corrected by ${carl.email}: approvals before that have no effect.`;
    expect(JSON.stringify(again)).toContain(says);
    await expect
      .poll(() => mail.mails.map(({ to }) => to))
      .toEqual([[ann.email, bob.email], [bob.email], [ann.email, bob.email]]);
    const edited = await edits(says);
    expect([edited.ts, slackButtons(edited)]).toEqual([[...chats.messages.keys()][0], undefined]);
    // Only the new message can be decided in.
    await pressInSlack(world, channelId, slackButtons(first)!.approve);
    expect((await read(id)).approvers).toEqual({ needed: 2, given: 0 });
    await pressInSlack(world, channelId, slackButtons(again)!.approve);
    await expect.poll(async () => (await read(id)).approvers).toEqual({ needed: 2, given: 1 });
    await outboxIsEmpty();
    const now = chats.messages.get([...chats.messages.keys()][1]!)!;
    expect(slackButtons(now)).toEqual(slackButtons(again));
    expect(slackButtons(chats.messages.get([...chats.messages.keys()][0]!)!)).toBeUndefined();
    // One reminder, not one for each notice.
    world.clock.skewMs = (24 * 60 - 29) * 60_000;
    await expect.poll(() => hooks.came().filter(({ type }) => type === 'call_held.reminder').length).toBe(1);
    await outboxIsEmpty();
    expect(hooks.came().map(({ type }) => type.split('.')[1])).toEqual([
      'opened',
      'updated',
      'updated',
      'opened',
      'updated',
      'reminder',
    ]);
  });

  test.each([
    ['is removed', (id: string) => organisation.ask('DELETE', `/owner/owners/${id}`)],
    ['may no longer decide', () => organisation.ask('POST', '/owner/owners', { email: ann.email, role: 'viewer' })],
  ])('an approver who %s afterwards is not named any more: that approval does not count', async (_what, end) => {
    await addHook();
    const id = await agent.hold(WRITE);
    await hooks.waitFor(1);
    await approve(id, ann);
    await hooks.waitFor(2);
    expect((await end(ann.id)).status).toBeLessThan(300);
    const [, , updated] = await hooks.waitFor(3);
    expect(updated).toMatchObject({
      type: 'call_held.updated',
      data: { id, title: 'Approval needed from 2 people', progress: [], approvers: { needed: 2, approved_by: [] } },
    });
    await approve(id, bob);
    await hooks.waitFor(4);
    await approve(id, carl);
    await hooks.waitFor(5);
    expect(hooks.came().at(-1)!.data.outcome).toBe(`Approved by ${bob.email}, ${carl.email}`);
  });

  test('a call that is approved while its message is in flight: an update follows', async () => {
    const arrived = Promise.withResolvers<() => void>();
    hooks.answer = (_request, response) => arrived.resolve(() => response.writeHead(204).end());
    await addHook();
    const id = await agent.hold(WRITE);
    const answer = await arrived.promise;
    hooks.answer = (_request, response) => response.writeHead(204).end();
    await approve(id);
    // The notice of the approval is taken out of the outbox before the message counts as sent.
    await expect.poll(() => world.db.selectFrom('notices').select('id').execute()).toEqual([]);
    answer();
    const [, updated] = await hooks.waitFor(2);
    expect(updated).toMatchObject({ type: 'call_held.updated', data: { approvers: { approved_by: [ann.email] } } });
    await outboxIsEmpty();
    expect(hooks.seen).toHaveLength(2);
  });

  test('of several approvals while nobody sends, one update is sent', async () => {
    await addHook();
    const id = await (await organisation.agent({ rules: rules(3) })).hold(WRITE);
    await hooks.waitFor(1);
    const forced = { name: 'notices', holder: 'another', now: 0, until: Date.now() + 3_600_000, isFree: true };
    const fence = await takeLease(world.db, forced);
    await approve(id, ann);
    await approve(id, bob);
    await world.db.updateTable('leases').set({ until: 0 }).where('fence', '=', fence!).execute();
    await hooks.waitFor(2);
    await outboxIsEmpty();
    expect(hooks.came().slice(1)).toMatchObject([{ data: { approvers: { approved_by: [ann.email, bob.email] } } }]);
  });
});

describe.each(STORES)(`kill -9 of the sender of updates on %s${postgresNote}`, (store) => {
  const HELD = 6;

  test('no update is lost, and a repeated one has the same id', async () => {
    const world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: hooks.address });
    const organisation = await world.demoOrganisation();
    const ann = await organisation.addOwner('approver');
    const agent = await organisation.agent({ rules: rules(2) });
    const channel = { name: 'hook', kind: 'webhook', url: `${hooks.url}/hook` };
    await expectStatus(201, organisation.ask('POST', '/owner/channels', channel));
    await world.running.stop();
    const environment = { ...world.environment, PORT: new URL(world.running.baseUrl).port };
    const [first, second] = [spawnBroker(environment), spawnBroker(environment)];
    await first.serve();
    const held: string[] = [];
    const hold = async (i: number) => {
      const { body } = await expectStatus(202, agent.act({ ...WRITE, data: { i } }));
      held.push(body.approval_id);
    };
    for (let i = 0; i < HELD; i++) await hold(i);
    await hooks.waitFor(HELD);
    // One more, whose message is in flight when the call is approved. Then two updates are answered, and no other.
    let answered = 0;
    hooks.answer = (_request, response, body) => {
      if (JSON.parse(body).type === 'call_held.updated' && answered++ < 2) response.writeHead(204).end();
    };
    await hold(HELD);
    await hooks.waitFor(HELD + 1);
    for (const id of held) await expectStatus(200, organisation.approve(id, {}, ann));
    await updatesReach(3);
    first.signal('SIGKILL');
    await first.ended;
    hooks.answer = (_request, response) => response.writeHead(204).end();
    expect(await second.serve()).toBeDefined();
    const knowing = (server: ChannelServer) =>
      server.came().filter(({ data }) => (data.approvers as { approved_by: string[] }).approved_by.length === 1);
    await expect
      .poll(() => new Set(knowing(hooks).map(({ data }) => data.id)).size, { timeout: 15_000 })
      .toBe(HELD + 1);
    for (const id of held) {
      const copies = hooks.came().filter(({ type, data }) => type === 'call_held.updated' && data.id === id);
      expect(new Set(copies.map((one) => one.id)).size).toBeLessThanOrEqual(1);
    }
    second.signal('SIGTERM');
    await second.ended;

    async function updatesReach(count: number) {
      const came = () => hooks.came().filter(({ type }) => type === 'call_held.updated').length;
      // The message in flight may have to time out first.
      await expect.poll(came, { timeout: 60_000 }).toBeGreaterThanOrEqual(count);
    }
  }, 180_000);
});
