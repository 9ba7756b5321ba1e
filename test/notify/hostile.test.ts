/** Sentences and names that imitate the channel's own text: what each kind of channel sends of them. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startChannelServer } from '../world/servers/channel-server.ts';
import { CANARY, givenWorld, shared } from '../world/world.ts';

const HOSTILE = [
  '<!channel> <http://evil.example|Approve>',
  '[Approve](http://evil.example) *bold* `code`',
  '<img src=x onerror=alert(1)><a href="http://evil.example">Approve</a>',
  'first\r\nsecond\u2028third',
  'pay\u200bpal \u202elive\u2066',
  'p\u0430ypal.example',
  '“ end of quote ”',
];
const HIDDEN = /[\u200b\u202e\u2066\u2028\r]|\n(?=second|third)/;

const server = shared(() => startChannelServer());
beforeEach(() => {
  server.seen.length = 0;
});

describe('a hostile title', () => {
  const world = givenWorld('sqlite', () => ({ AGENT_BROKER_ALLOW_PRIVATE: server.address }));
  const organisation = shared(() =>
    world.demoOrganisation({ manifest: { sentences: { 'POST /items': 'create *{/title}*' } } }),
  );
  const agent = shared(() => organisation.agent());
  beforeAll(async () => {
    const hook = { name: 'hook', kind: 'webhook', url: `${server.url}/hook` };
    const phone = { name: 'phone', kind: 'ntfy', server: server.url, topic: 'acme', secret: 'tk_0123456789' };
    for (const channel of [hook, phone])
      expect((await organisation.ask('POST', '/owner/channels', channel)).status).toBe(201);
  });

  test.each(HOSTILE)('%j is sent as text that hides nothing, and with nothing else of the body', async (title) => {
    const call = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' };
    const held = await agent.act({ ...call, data: { title, note: 'BODY-OF-THE-CALL', token: CANARY } });
    expect(held.status, held.text).toBe(202);
    await server.waitFor(2, 5_000);
    for (const { body } of server.seen) {
      expect(body).not.toMatch(/BODY-OF-THE-CALL|tk_0123456789/);
      expect(body).not.toContain(CANARY);
      const texts = JSON.parse(body);
      expect(JSON.stringify(texts.data?.sentence ?? texts.message)).not.toMatch(HIDDEN);
    }
    const hook = server.seen.find(({ target }) => target === '/hook')!;
    const sentence: string = JSON.parse(hook.body).data.sentence;
    expect(sentence).toMatch(/^create “[^“”]*”( \(.*\))? and 2 other fields$/);
    const published = JSON.parse(server.seen.find(({ target }) => target === '/')!.body);
    const link = `${world.running.baseUrl}/approve/${held.body.approval_id}`;
    // Plain text, and one button that opens the page. ntfy's clients make links of addresses in texts, so these are broken up.
    expect(published.message).not.toMatch(/:\/\/|ypal\.example|evil\.example/);
    published.message = published.message.replaceAll('\u2060', '');
    expect(published).toEqual({
      topic: 'acme',
      title: 'Approval needed',
      message: expect.stringContaining(sentence),
      priority: 4,
      click: link,
      actions: [{ action: 'view', label: 'Open', url: link }],
      sequence_id: expect.stringMatching(/^[-0-9a-f]{36}$/),
    });
  });

  test('ntfy: the outcome replaces the message', async () => {
    const call = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' };
    const approval_id = await agent.hold({ ...call, data: { title: 'x' } });
    await server.waitFor(2);
    await organisation.deny(approval_id);
    await server.waitFor(4);
    const published = server.seen.filter(({ target }) => target === '/').map(({ body }) => JSON.parse(body));
    expect(published).toHaveLength(2);
    expect(published[1].sequence_id).toBe(published[0].sequence_id);
    expect(published[1].message).toMatch(/^Denied by owner-/);
  });
});
