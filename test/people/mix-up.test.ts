/**
 * Mix-up attack (RFC 9700 section 4.4): organisations of one broker do not trust each other, and one's issuer redirects people to the issuer of
 * another. It gets no code of that issuer, and cannot impersonate anybody.
 */
import { createHash, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { Browser, type Visit } from '../world/browser/browser.ts';
import { agentOfPeople, authorise, onward, start } from '../world/people.ts';
import type { LyingProvider } from '../world/servers/lying-provider.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import type { Organisation } from '../world/world.ts';
import { givenLyingIssuer } from './issuer-world.ts';

const SHARED = '/me/consent/signed-in';
const OWN = /^\/me\/signed-in\/[0-9a-f]{32}$/;
const SILENT = { authorization_response_iss_parameter_supported: undefined };

describe.each(ONE_STORE)(`mix-up on %s${postgresNote}`, (store) => {
  const { server, issuer, others, world, organisation, trust, assertion, actAs } = givenLyingIssuer(store);
  const evil = (): LyingProvider => others[0]!;
  /** The redirect URIs that the broker's client has at the honest issuer. */
  let registered: string[];
  /** Codes that the malicious issuer received. */
  let stolen: string[];
  let strangers: Organisation;
  /** Client id of the broker at both, different for each test, so that no metadata is cached. */
  let client: string;

  const own = async (by: Organisation = organisation, of = issuer.issuer): Promise<string> =>
    (await by.ask('GET', '/owner/caller-issuers')).body.redirect_uris[of];
  const shared = () => world.running.baseUrl + SHARED;

  /** Sets up the honest issuer, with `iss` in its responses or without: PKCE, exact redirect URIs, and a session of ann. */
  const honest = async (namesItself: boolean, lies: Record<string, unknown> = SILENT) => {
    client = randomUUID();
    await trust({ client_id: client });
    await trust({ issuer: evil().issuer, client_id: client }, strangers);
    evil().metadata = lies;
    issuer.metadata = namesItself ? {} : SILENT;
    const codes = new Map<string, { nonce: string; challenge: string }>();
    issuer.answers.set('/auth', (request, response) => {
      const { searchParams: asked } = new URL(request.url!, issuer.issuer);
      const uri = asked.get('redirect_uri')!;
      if (asked.get('client_id') !== client || !registered.includes(uri))
        return void response.writeHead(400).end('redirect_uri is not registered');
      const code = randomUUID();
      codes.set(code, { nonce: asked.get('nonce')!, challenge: asked.get('code_challenge')! });
      const answer = { code, state: asked.get('state')!, ...(namesItself && { iss: issuer.issuer }) };
      response.writeHead(302, { location: `${uri}?${new URLSearchParams(answer)}` }).end();
    });
    issuer.answers.set('/token', async (_request, response, body) => {
      const form = new URLSearchParams(body);
      const found = codes.get(form.get('code') ?? '');
      codes.delete(form.get('code') ?? '');
      const verifier = form.get('code_verifier') ?? '';
      response.setHeader('content-type', 'application/json');
      if (found?.challenge !== createHash('sha256').update(verifier).digest('base64url'))
        return void response.writeHead(400).end('{"error":"invalid_grant"}');
      const id_token = await issuer.sign(issuer.honest({ nonce: found.nonce, aud: client }));
      response.end(JSON.stringify({ access_token: 'opaque', token_type: 'bearer', expires_in: 60, id_token }));
    });
  };
  /** Makes the malicious issuer redirect people to the attacker's sign-in, with a redirect URI of its choice and the person's state. */
  const sendOn = (asked: URL, redirectUri: string) => {
    evil().answers.set('/auth', (request, response) => {
      const to = new URL(asked);
      to.searchParams.set('state', new URL(request.url!, evil().issuer).searchParams.get('state')!);
      to.searchParams.set('redirect_uri', redirectUri);
      response.writeHead(302, { location: to.href }).end();
    });
    evil().answers.set('/token', (_request, response, body) => {
      stolen.push(new URLSearchParams(body).get('code') ?? '');
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}');
    });
  };
  const toSee = async (browser: Browser, by: Organisation, of: string): Promise<URL> => {
    const at = new URLSearchParams({ organisation: by.id, issuer: of });
    return new URL(onward(await browser.post(`${world.running.baseUrl}/me/connections/sign-in?${at}`, {})));
  };
  const toConsent = async (browser: Browser, by: Organisation, of: string): Promise<URL> => {
    const isHere = by.id === organisation.id;
    const agent = isHere ? undefined : await agentOfPeople(by);
    const told = isHere ? await assertion() : await evil().sign(evil().honest({ aud: 'agents' }));
    const url: string = (await actAs(told, agent)).body.consent_url;
    const to = new URL(await start(browser, url));
    expect(to.origin).toBe(of);
    return to;
  };
  const consented = async (browser: Browser) => {
    const { consent_url: url } = (await actAs(await assertion())).body;
    await authorise(server, browser, 'ann', onward(await browser.get(await start(browser, url))));
    expect((await browser.post(`${url}/keep`, {})).status).toBe(200);
  };
  const refused = (visit: Visit, status: number) => {
    expect([visit.status, visit.text.includes('http-equiv="refresh"')], visit.text).toEqual([status, false]);
    expect(visit.text).not.toContain('You are signed in');
  };

  beforeEach(async () => {
    stolen = [];
    evil().beHonest();
    evil().clock = issuer.clock;
    strangers = await world.organisation();
    await trust({ issuer: evil().issuer }, strangers);
    registered = [shared(), await own()];
  });

  describe.each([
    ['to see what was given', toSee],
    ['to consent', toConsent],
  ])('%s', (_what, begin) => {
    test.each([
      ['its own', false, own],
      ['the shared', false, shared],
      ['its own', true, own],
      ['the shared', true, shared],
    ])(
      'an issuer of another organisation redirects a person to %s redirect URI of an issuer that names itself: %s',
      async (_which, namesItself, uri) => {
        for (const lies of [SILENT, {}]) {
          await honest(namesItself, lies);
          const [thief, ann] = [new Browser(), new Browser()];
          const asked = await begin(thief, organisation, issuer.issuer);
          sendOn(asked, await uri());
          const misled = await ann.get((await begin(ann, strangers, evil().issuer)).href);
          expect(new URL(misled.url).searchParams.has('code')).toBe(true);
          refused(misled, 403);
          expect(stolen).toEqual([]);
          // Even with the code, the attacker would need the issuer's name, or the issuer's own redirect URI.
          const state = asked.searchParams.get('state')!;
          const code = new URL(misled.url).searchParams.get('code')!;
          const wrong = asked.searchParams.get('redirect_uri') === shared() ? await own() : shared();
          refused(await thief.get(`${wrong}?${new URLSearchParams({ code, state })}`), 403);
        }
      },
    );

    test('another organisation’s issuer cannot use its own redirect URI at an honest issuer', async () => {
      await honest(false);
      const [thief, ann] = [new Browser(), new Browser()];
      sendOn(await begin(thief, organisation, issuer.issuer), await own(strangers, evil().issuer));
      const misled = await ann.get((await begin(ann, strangers, evil().issuer)).href);
      expect([misled.status, misled.text]).toEqual([400, 'redirect_uri is not registered']);
      expect(stolen).toEqual([]);
    });
  });

  test('a callback at the shared redirect URI has to name its issuer, even if the metadata changes meanwhile', async () => {
    await honest(false, {});
    const [thief, ann] = [new Browser(), new Browser()];
    sendOn(await toSee(thief, organisation, issuer.issuer), shared());
    const to = await toSee(ann, strangers, evil().issuer);
    expect(to.searchParams.get('redirect_uri')).toBe(shared());
    evil().metadata = SILENT;
    await trust({ issuer: evil().issuer, client_id: randomUUID() }, strangers);
    const misled = await ann.get(to.href);
    expect(new URL(misled.url).searchParams.has('code')).toBe(true);
    refused(misled, 403);
    expect(stolen).toEqual([]);
  });

  test.each([
    ['says nothing of itself: its own', false],
    ['names itself in its answers: the shared one, as before', true],
  ])('people can sign in and consent at an issuer that %s', async (_what, namesItself) => {
    await honest(namesItself);
    const uri = namesItself ? shared() : await own();
    registered = [uri];
    expect(new URL(await own()).pathname).toMatch(OWN);
    expect((await toSee(new Browser(), organisation, issuer.issuer)).searchParams.get('redirect_uri')).toBe(uri);
    await consented(new Browser());
    expect((await actAs(await assertion())).body.data.who).toBe('ann');
    const ann = new Browser();
    const visit = await ann.get((await toSee(ann, organisation, issuer.issuer)).href);
    expect(visit.text).toContain('You are signed in');
    expect((await ann.get(`${world.running.baseUrl}/me/connections`)).text).toContain('ann@docs.example');
  });

  test('each issuer of each organisation has a redirect URI of its own, and a callback is accepted only there', async () => {
    const both = await world.organisation();
    for (const one of [issuer, evil()]) {
      const trusted = { issuer: one.issuer, audience: 'agents', client_id: 'broker' };
      expect((await both.ask('POST', '/owner/caller-issuers', trusted)).status).toBe(200);
    }
    const uris = [
      await own(),
      await own(strangers, evil().issuer),
      await own(both),
      await own(both, evil().issuer),
      shared(),
    ];
    expect(new Set(uris).size).toBe(5);
    expect(await own()).toBe(uris[0]);
    await honest(false);
    const ann = new Browser();
    const to = await toSee(ann, organisation, issuer.issuer);
    ann.stopAt = ({ origin }) => origin === world.running.baseUrl;
    const back = new URL((await ann.get(to.href)).url);
    ann.stopAt = undefined;
    const near = [
      `${uris[0]}/`,
      uris[0]!.toUpperCase().replace(/^.*\/ME\/SIGNED-IN/, `${world.running.baseUrl}/me/signed-in`),
    ];
    for (const uri of [...uris.slice(1), ...near]) {
      const visit = await ann.get(uri + back.search);
      expect([uri, visit.text.includes('You are signed in'), visit.status >= 400]).toEqual([uri, false, true]);
      const named = await ann.get(`${uri}${back.search}&iss=${encodeURIComponent(issuer.issuer)}`);
      expect([uri, named.text.includes('You are signed in'), named.status >= 400]).toEqual([uri, false, true]);
    }
    expect(issuer.seen).not.toContain('POST /token');
    expect((await ann.get(back.href)).text).toContain('have no access to any of your accounts');
  });
});
