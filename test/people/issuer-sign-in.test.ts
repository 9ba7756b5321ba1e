/** Sign-in at an issuer with invalid responses: only the intended person continues to the platform. */
import { describe, expect, test } from 'vitest';
import { Browser, type Visit } from '../world/browser/browser.ts';
import { govern } from '../world/docs-platform.ts';
import { documentOf, onward, start } from '../world/people.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenLyingIssuer, JSON_TYPE } from './issuer-world.ts';

describe.each(ONE_STORE)(`sign-in at a faulty issuer on %s${postgresNote}`, (store) => {
  const { server, issuer, organisation, assertion, actAs, trust } = givenLyingIssuer(store);

  const begin = async (sub = 'ann', more: object = {}) => {
    const { body } = await actAs(await assertion({ sub, ...more }));
    const browser = new Browser();
    return { browser, url: body.consent_url as string, to: await start(browser, body.consent_url) };
  };
  const notOn = (visit: Visit, status: number) => {
    expect([visit.status, visit.text.includes('http-equiv="refresh"')], visit.text).toEqual([status, false]);
    expect(server.seen.filter((path) => path === 'GET /auth')).toEqual([]);
  };
  test('the intended person continues to the platform', async () => {
    const { browser, to } = await begin();
    expect(onward(await browser.get(to))).toContain(`${server.issuer}/auth`);
  });

  test('the userinfo endpoint is not called: only the subject in the ID token counts', async () => {
    issuer.metadata = { userinfo_endpoint: `${issuer.issuer}/userinfo` };
    issuer.claims = { email: undefined, email_verified: undefined };
    issuer.answers.set('/userinfo', (_request, response) => response.writeHead(500).end());
    const { browser, to } = await begin();
    expect(onward(await browser.get(to))).toContain(`${server.issuer}/auth`);
    expect(issuer.seen).not.toContain('GET /userinfo');
  });

  // Microsoft Entra gives each client another `sub` of a person, and the same `oid` to those that ask for the scope `profile`.
  test.each([
    ['oid', 'profile'],
    ['preferred_username', 'profile'],
    ['email', 'email'],
    ['phone_number', 'phone'],
  ])(
    'a person whom the claim %s identifies is asked for the scope %s, with which it is in the ID token',
    async (claim, scope) => {
      const scopesOf = (to: string) => new URL(to).searchParams.get('scope');
      expect(scopesOf((await begin()).to)).toBe('openid');
      await trust({ claim });
      const identified = async (person: string) => {
        const { browser, to } = await begin('ann-for-the-agents', { [claim]: 'ann@acme.example' });
        expect(scopesOf(to)).toBe(`openid ${scope}`);
        issuer.claims = { sub: 'ann-for-the-broker', [claim]: person };
        return await browser.get(to);
      };
      notOn(await identified('bob@acme.example'), 403);
      expect(onward(await identified('ann@acme.example'))).toContain(`${server.issuer}/auth`);
    },
  );

  test('a claim that the ID token does not contain is read from the userinfo endpoint, of the same subject only', async () => {
    // Another client, because the metadata of the issuer is cached for each.
    await trust({ claim: 'email', client_id: 'other-client' });
    issuer.metadata = { userinfo_endpoint: `${issuer.issuer}/userinfo` };
    const identified = async (person: object) => {
      issuer.claims = { sub: 'ann-for-the-broker', aud: 'other-client' };
      issuer.answers.set('/userinfo', (_request, response) => {
        response.writeHead(200, JSON_TYPE).end(JSON.stringify(person));
      });
      const { browser, to } = await begin('ann-for-the-agents', { email: 'ann@acme.example' });
      return await browser.get(to);
    };
    notOn(await identified({ sub: 'ann-for-the-broker' }), 403);
    notOn(await identified({ sub: 'ann-for-the-broker', email: 'bob@acme.example' }), 403);
    notOn(await identified({ sub: 'ann-for-the-agents', email: 'ann@acme.example' }), 403);
    const visit = await identified({ sub: 'ann-for-the-broker', email: 'ann@acme.example' });
    expect(onward(visit)).toContain(`${server.issuer}/auth`);
  });

  test.each<[string, () => void]>([
    [
      'the name of another issuer in the answer (RFC 9207)',
      () => (issuer.callback = (one) => one.set('iss', 'https://id.example')),
    ],
    ['no name of the issuer, which said that it would', () => (issuer.callback = (one) => one.delete('iss'))],
    ['an error', () => (issuer.callback = (one) => one.set('error', 'access_denied'))],
    ['another code', () => (issuer.callback = (one) => one.set('code', 'made-up'))],
    ['two codes', () => (issuer.callback = (one) => one.append('code', 'made-up'))],
    ['an ID token for another client', () => (issuer.claims = { aud: 'another' })],
    ['an ID token of another sign-in', () => (issuer.claims = { nonce: 'another' })],
    ['an ID token of another issuer', () => (issuer.claims = { iss: 'https://id.example' })],
    ['an ID token that is over', () => (issuer.claims = { iat: 1_000, exp: 2_000 })],
    ['somebody else', () => (issuer.claims = { sub: 'bob' })],
    ['somebody with other letters', () => (issuer.claims = { sub: 'Ann' })],
    ['nobody', () => (issuer.claims = { sub: undefined })],
    ['an assertion in place of an ID token', () => (issuer.token = () => assertion())],
  ])('%s: the sign-in is refused', async (_what, lie) => {
    const { browser, to } = await begin();
    lie();
    notOn(await browser.get(to), 403);
  });

  test('an issuer whose discovery document adds a slash to its name: nobody is sent there, and the page says what differs', async () => {
    // Another client, because the metadata of the issuer is cached for each.
    await trust({ client_id: 'one-more-client' });
    const { body } = await actAs(await assertion());
    issuer.metadata = { issuer: `${issuer.issuer}/` };
    const visit = await new Browser().post(`${body.consent_url}/start`, {});
    notOn(visit, 409);
    expect(visit.text).toContain('differs from the configured one');
  });

  test('a callback counts once, in the browser that began it, and with its own state', async () => {
    const { browser, to } = await begin();
    browser.stopAt = ({ pathname }) => pathname === '/me/consent/signed-in';
    const { url } = await browser.get(to);
    browser.stopAt = undefined;
    const other = await begin('bob');
    notOn(await other.browser.get(url), 400);
    notOn(await new Browser().get(url), 400);
    const mixed = new URL(url);
    mixed.searchParams.set('state', `sta_${'A'.repeat(43)}`);
    notOn(await browser.get(mixed.href), 400);
    expect((await browser.get(`${url}&state=x`)).status).toBe(400);
    expect(onward(await browser.get(url))).toContain(`${server.issuer}/auth`);
    expect((await browser.get(url)).status).toBe(400);
    // The platform's redirect URI does not accept it.
    const platforms = url.replace('/me/consent/signed-in', `/console/connected/${organisation.id}`);
    expect((await browser.get(platforms)).status).not.toBe(200);
  });

  test('a callback is refused after the issuer was removed, or its client changed', async () => {
    const { browser, to } = await begin();
    browser.stopAt = ({ pathname }) => pathname === '/me/consent/signed-in';
    const { url } = await browser.get(to);
    browser.stopAt = undefined;
    expect((await govern(organisation, documentOf(server, { asserted: [] }, { caller_issuers: [] }))).status).toBe(200);
    notOn(await browser.get(url), 409);
  });
});
