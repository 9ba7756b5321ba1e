/** A link to `/proxy` with a token in it, opened by a signed-in owner: nothing runs on the console's origin, and nothing is sent. */

import { request } from 'undici';
import { beforeAll, expect, test } from 'vitest';
import { sessionCookieName } from '../../broker/auth/session-cookie.ts';
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import type { TestAgent } from '../world/agent.ts';
import { describeInChromium, openPage } from '../world/browser/chromium.ts';
import { ALLOW_ALL, type Organisation, startWorld, type World } from '../world/world.ts';

const PATH = '/proxy/demo-main/items';

describeInChromium('a real browser', () => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  beforeAll(async () => {
    world = await startWorld();
    organisation = await world.demoOrganisation();
    agent = await organisation.agent({ rules: ALLOW_ALL });
    // Code that a hostile platform, or one that stores content of strangers, would run in the owner's browser.
    world.upstream.answer = (_, response) =>
      response
        .writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'taken=1' })
        .end(`<script>document.title = 'ran'; fetch('/owner/me')</script>`);
  });

  test('is refused on navigation and from a page of the broker, and nothing runs', async () => {
    const { baseUrl, broker } = world.running;
    const page = await openPage({ width: 800, height: 600 });
    await page.open((await signInLink(broker, organisation.owner)).url);
    await page.until(`location.pathname === '/console'`);
    const { host } = new URL(baseUrl);
    for (const userinfo of [`x:${agent.token()}@`, `${agent.token()}@`, '']) {
      await page.open(`http://${userinfo}${host}${PATH}`);
      await page.until(`location.pathname.startsWith('/proxy/') && document.readyState === 'complete'`);
      expect(await page.value(`document.body.innerText`)).toContain('for programs, not for browsers');
      expect(await page.value(`document.title`)).not.toBe('ran');
    }
    // A page of the broker's own origin gets nothing with the token either: the request carries the owner's cookie.
    await page.open(`${baseUrl}/console/base.css`);
    const fetched = `fetch('${PATH}', { headers: { 'x-svc-authorization': 'Bearer ${agent.token()}' } }).then((one) => one.status)`;
    expect(await page.value(fetched)).toBe(403);
    expect(world.upstream.seen).toEqual([]);
  });

  test('an answer that reaches a browser nevertheless does not run: it is sandboxed in a frame', async () => {
    const { baseUrl } = world.running;
    const answer = await fetch(`${baseUrl}${PATH}`, { headers: { authorization: `Bearer ${agent.token()}` } });
    expect(answer.headers.get('set-cookie')).toBeNull();
    expect(answer.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'; frame-ancestors 'none'");
    expect(world.upstream.seen.length).toBe(1);
  });
});

test.each<[string, Record<string, string>]>([
  ['a navigation', { 'sec-fetch-mode': 'navigate' }],
  ['a script, or anything else that a page loads', { 'sec-fetch-dest': 'script' }],
  ['the script of a service worker', { 'service-worker': 'script' }],
  ['a request with the cookie of an owner', { cookie: 'a=b; OWNERS_COOKIE=x' }],
])('%s is refused with the token of an agent, too', async (_what, headers) => {
  const world = await startWorld();
  const organisation = await world.demoOrganisation();
  const agent = await organisation.agent({ rules: ALLOW_ALL });
  // Without what fetch adds by itself.
  const get = async (more: Record<string, string>) => {
    const { statusCode, body } = await request(`${world.running.baseUrl}${PATH}`, {
      headers: {
        authorization: `Bearer ${agent.token()}`,
        ...more,
        ...(more.cookie && { cookie: more.cookie.replace('OWNERS_COOKIE', sessionCookieName(world.running.baseUrl)) }),
      },
    });
    return [statusCode, await body.text()];
  };
  expect(await get(headers)).toEqual([403, expect.stringContaining('for programs, not for browsers')]);
  expect(world.upstream.seen).toEqual([]);
  expect(await get({ 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', cookie: 'a=b' })).toEqual([
    200,
    expect.any(String),
  ]);
});
