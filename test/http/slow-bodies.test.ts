/** Who asks may lose the right to while the body of the request is on its way: what is so when it has come whole decides. */
import { once } from 'node:events';
import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { makeKeyPair, send, type TestAgent } from '../world/agent.ts';
import { ALL_DEMO } from '../world/child.ts';
import { fresh, shared } from '../world/given.ts';
import { startLyingProvider } from '../world/lying-provider.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { ALLOW_ALL, startWorld } from '../world/world.ts';

describe.each(STORES)(`bodies that are long on their way on %s${postgresNote}`, (store) => {
  const issuer = shared(() => startLyingProvider());
  const world = shared(() => startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: new URL(issuer.issuer).host }));
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent({ rules: ALLOW_ALL }));

  /** Sends the head of a request and the first byte of its body, does `meanwhile`, and sends the rest. */
  async function slowly(path: string, token: string, body: object, meanwhile: () => Promise<unknown>) {
    const text = JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': text.length,
    };
    const asked = request(world.running.baseUrl + path, { method: 'POST', headers });
    const answered = once(asked, 'response');
    await new Promise((sent) => asked.write(text.slice(0, 1), sent));
    // The broker has begun with this request when it answers one that came later.
    await organisation.ask('GET', '/owner/me');
    await meanwhile();
    asked.end(text.slice(1));
    const [response] = await answered;
    return { status: response.statusCode, body: JSON.parse(await textOf(response)) };
  }
  const owners = async (): Promise<string[]> =>
    (await organisation.ask('GET', '/owner/owners')).body.owners.map(({ email }: { email: string }) => email);
  async function replaceKey({ id }: TestAgent): Promise<void> {
    const made = await organisation.ask('POST', `/owner/agents/${id}/bootstrap-token`, { rotate: true });
    const bound = await send(`${world.running.baseUrl}/v1/agents/bind`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        bootstrap_token: made.body.bootstrap_token,
        public_key_pem: makeKeyPair().publicPem,
      }),
    });
    expect(bound.status, bound.text).toBe(200);
  }

  test.each<[string, (owner: { id: string; email: string }, token: string) => Promise<{ status: number }>, number]>([
    ['an admin who was removed', ({ id }) => organisation.ask('DELETE', `/owner/owners/${id}`), 401],
    [
      'an admin who was made a viewer',
      ({ email }) => organisation.ask('POST', '/owner/owners', { email, role: 'viewer' }),
      403,
    ],
    [
      'an admin who signed out',
      (_, token) =>
        send(`${world.running.baseUrl}/owner/sign-out`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}` },
        }),
      401,
    ],
    ['an admin of whom nothing changed', () => organisation.ask('GET', '/owner/me'), 200],
  ])('%s', async (_what, meanwhile, status) => {
    const admin = await organisation.addOwner('admin');
    const { token } = mintOwnerSession(world.running.broker, admin);
    const email = `${crypto.randomUUID()}@evil.example`;
    const answer = await slowly('/owner/owners', token, { email, role: 'admin' }, async () => {
      expect((await meanwhile(admin, token)).status).toBe(200);
    });
    expect(answer.status, JSON.stringify(answer.body)).toBe(status);
    expect((await owners()).includes(email)).toBe(status === 200);
  });

  test('a pipeline that was removed', async () => {
    const trusted = { name: 'ci', role: 'admin', issuer: issuer.issuer, subject: 'job' };
    const { body: made } = await organisation.ask('POST', '/owner/pipelines', trusted);
    const token = await issuer.sign(issuer.honest({ aud: made.audience, sub: 'job' }));
    const apply = async (email: string, meanwhile: () => Promise<unknown>) => {
      const { text } = (await organisation.ask('GET', '/owner/governance')).body;
      const added = text.replace('owners:\n', `owners:\n  - { email: ${email}, role: admin }\n`);
      return await slowly('/owner/governance/apply', token, { text: added }, meanwhile);
    };
    expect(await apply('first@evil.example', async () => {})).toMatchObject({ status: 200 });
    const removed = await apply('second@evil.example', () => organisation.ask('DELETE', `/owner/pipelines/${made.id}`));
    expect(removed).toMatchObject({ status: 401, body: { error: 'invalid_token' } });
    expect(await owners()).toContain('first@evil.example');
    expect(await owners()).not.toContain('second@evil.example');
  });

  test('a parent whose key was replaced', async () => {
    const issue = (meanwhile: () => Promise<unknown>) =>
      slowly('/v1/agents/children', agent.token(), { grants: ALL_DEMO }, meanwhile);
    expect(await issue(async () => {})).toMatchObject({ status: 201 });
    expect(await issue(() => replaceKey(agent))).toMatchObject({ status: 401, body: { error: 'invalid_signature' } });
  });
});
