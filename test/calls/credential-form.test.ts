import { beforeAll, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { evidenceOf, withoutCalls } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const BAD = [
  ['several lines', 'goodsecret9\nsecond-line', 'has several lines'],
  ['a trailing blank line', 'goodsecret9\n\n', 'ends with a line break'],
  ['a trailing space', 'goodsecret9 ', 'ends with a space'],
  ['a leading space', ' goodsecret9', 'begins with a space'],
  ['non-ASCII characters', 'sécrét-ünïcode', 'contains non-ASCII characters'],
  ['a control character', 'good\u0007secret9', 'contains a control character'],
] as const;

describe.each(ONE_STORE)(`a secret that no header can carry, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ secret: null }));
  beforeAll(async () => {
    await organisation.platform({ id: 'asked', secret: null, manifest: { auth: { type: 'query', name: 'key' } } });
  });
  const file = (type: string) =>
    `platforms:\n  crm: { kind: rest, base_url: "${world.upstream.url}", auth: ${type}, scopes: { "crm:read": ["GET /**"] } }\nconnections:\n  main: { platform: crm, secret: { env: S } }\n`;
  const governance = (verb: string, text: string, secret: string) =>
    organisation.ask('POST', `/owner/governance/${verb}`, { text, values: { 'env:S': secret } });

  test.each(BAD)('with %s is refused by plan and apply, with the reason', async (_, secret, wrong) => {
    for (const type of ['{ type: bearer }', '{ type: header, name: X-Key }'])
      for (const verb of ['plan', 'apply']) {
        const refused = await expectStatus(400, governance(verb, file(type), secret));
        expect(refused.body.problems).toEqual([expect.stringContaining(`secret: the value of env:S ${wrong}`)]);
        expect(refused.text).not.toContain(secret.trim());
      }
    // These are encoded where they are placed.
    for (const type of ['{ type: basic }', '{ type: query, name: key }'])
      expect((await governance('plan', file(type), secret)).status).toBe(200);
  });

  test.each(BAD)('with %s is refused when an owner enters it', async (_, secret, wrong) => {
    const connect = (platform: string) =>
      organisation.ask('POST', '/owner/connections', { platform, label: `${platform}-hand`, secret });
    const refused = await connect('demo');
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining(`secret: ${wrong}`)]);
  });

  // After `Bearer ` a secret that begins with a space can be sent.
  const stored = BAD.filter(([, secret]) => !secret.startsWith(' '));
  test.each(stored)(
    'with %s that is stored nevertheless is reported by the call and by the connection',
    async (_, secret) => {
      const own = await world.organisation();
      await own.platform({ secret: null });
      await own.connection('demo', { secret });
      const agent = await own.agent();
      const act = () => agent.act({ platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' });
      const answer = await withoutCalls(world, act);
      expect([answer.status, answer.body.error, answer.body.reason], answer.text).toEqual([
        409,
        'platform_reauth_needed',
        'credential_malformed',
      ]);
      expect(answer.body.message).toContain('cannot be sent');
      expect((await evidenceOf(world, agent, answer.body.audit_id)).row.reason).toBe('credential_malformed');
      const [connection] = (await own.ask('GET', '/owner/connections')).body.connections;
      expect(connection).toMatchObject({ status: 'reauth_needed', state: 'reauth_needed' });
      // The mark does not block calls: they pass as soon as the secret is replaced.
      await expectStatus(200, own.ask('POST', `/owner/connections/${connection.id}/secret`, { secret: 'goodsecret9' }));
      expect((await act()).status).toBe(200);
    },
  );
});
