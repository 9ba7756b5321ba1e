/** A held call on a signed webhook, end to end: what is sent, when, and the outcome. */
import { Webhook } from 'standardwebhooks';
import { beforeEach, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { startChannelServer } from '../world/servers/channel-server.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { CANARY, fresh, givenWorld, shared, WRITE } from '../world/world.ts';

const server = shared(() => startChannelServer());
beforeEach(() => {
  server.seen.length = 0;
});

describe.each(STORES)(`webhooks on %s${postgresNote}`, (store) => {
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: server.address }));
  const organisation = fresh(() => world.demoOrganisation({ manifest: { name: 'The shop' } }));
  const agent = fresh(() => organisation.agent({ name: 'triage' }));

  const addWebhook = async () => {
    const channel = { name: 'hook', kind: 'webhook', url: `${server.url}/hook` };
    const made = await expectStatus(201, organisation.ask('POST', '/owner/channels', channel));
    return made.body;
  };

  test('a notice of a held call is sent within two seconds, signed by the standard, and its outcome after it', async () => {
    const { secret } = await addWebhook();
    const began = Date.now();
    const held = await expectStatus(202, agent.act({ ...WRITE, data: { title: 'SECRET-BODY' } }));
    const [first] = await server.waitFor(1, 2_000);
    expect(Date.now() - began).toBeLessThan(scaledTimeout(2_000));
    expect(new Webhook(secret).verify(first!.body, first!.headers)).toEqual(JSON.parse(first!.body));
    const id = held.body.approval_id;
    expect(first!.type).toBe('call_held.opened');
    expect(first!.data).toEqual({
      id,
      title: 'Approval needed',
      sentence: expect.stringContaining('/items'),
      agent: 'triage',
      parent: null,
      platform: 'demo',
      platform_name: 'The shop',
      until: expect.stringMatching(/Z$/),
      link: `${world.running.baseUrl}/approve/${id}`,
      outcome: null,
      progress: [],
      approvers: null,
    });
    expect((await organisation.deny(id)).status).toBe(200);
    const [, outcome] = await server.waitFor(2);
    expect(outcome!.type).toBe('call_held.outcome');
    expect(outcome!.data.outcome).toBe(`Denied by ${organisation.owner.email}`);
    expect(outcome!.id).not.toBe(first!.id);
    const { id: channel } = (await organisation.ask('GET', '/owner/channels')).body.channels[0];
    await organisation.ask('POST', `/owner/channels/${channel}/test`, {});
    await organisation.ask('POST', `/owner/channels/${channel}/settings`, { kind: 'webhook', url: server.url, secret });
    await organisation.ask('DELETE', `/owner/channels/${channel}`);
    const { text, body: audit } = await organisation.ask('GET', '/owner/audit');
    const reasons = audit.rows
      .map(({ reason }: { reason: string }) => reason)
      .filter((one: string) => /^channel_/.test(one));
    expect(reasons).toEqual(['channel_removed', 'channel_changed', 'channel_tested', 'channel_created']);
    expect(text).not.toContain(secret);
    expect(server.came()[2]).toMatchObject({ type: 'test', data: { sentence: 'The channel hook works.' } });
    for (const { body } of server.came()) {
      expect(body).not.toContain(CANARY);
      expect(body).not.toContain(secret);
    }
  });
});
