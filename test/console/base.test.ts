/** The base of every console page: its files and libraries, invisible characters made visible, and the sign-in redirect. */
import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import { readPages } from '../../broker/console/pages.ts';
import { describeInChromium, openPage } from '../world/browser/chromium.ts';
import { isLive, signInByLink } from '../world/browser/console.ts';
import { ROOT } from '../world/checkout.ts';
import { givenWorld, shared } from '../world/world.ts';

/** In the page: properties of rules within `@media` that a later rule with the same selector, outside of it, sets again. */
const overriddenIn = `(files) => files.flatMap(({ name, text }) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  const rules = [...sheet.cssRules];
  const parts = (rule) => rule.selectorText.split(/,(?![^(]*\\))/).map((part) => part.trim());
  return rules.flatMap((media, at) => media instanceof CSSMediaRule
    ? [...media.cssRules].filter((rule) => rule.selectorText).flatMap((rule) => rules.slice(at + 1)
        .filter((later) => later instanceof CSSStyleRule)
        .flatMap((later) => parts(rule).filter((part) => parts(later).includes(part))
          .flatMap((part) => [...rule.style].filter((property) => later.style.getPropertyValue(property) !== '')
            .map((property) => [name + ':', media.conditionText, part, property].join(' ')))))
    : []);
})`;

describeInChromium("the console's base", () => {
  const at = (path: string) => world.running.baseUrl + path;

  const world = givenWorld();
  const organisation = shared(() => world.organisation());
  const page = shared(() => openPage({ width: 800, height: 600 }));

  test('without a session a page redirects to sign-in, and back to the requested page afterwards', async () => {
    await page.open(at('/console?from=here'));
    await page.until(`location.pathname === '/console/sign-in'`);
    await page.open((await signInLink(world.running.broker, organisation.owner)).url);
    await page.until(`location.pathname + location.search === '/console?from=here'`);
  });

  test('a change that is refused because the session has ended leads to sign-in, which says that nothing was changed', async () => {
    await signInByLink(page, world, organisation.owner);
    await page.open(at('/console/team'));
    await page.click('#member-email');
    await page.type('new@acme.example');
    // What waits is read again when the stream of events is open: no request of the page itself may find that the session is gone.
    await isLive(page);
    const read = `performance.getEntriesByType('resource').filter(({ name }) => name.includes('status=pending')).length`;
    await page.until(`${read} >= 6`);
    await page.command('Network.clearBrowserCookies');
    await page.click('#add');
    await page.until(
      `document.querySelector('#undone')?.innerText.includes('nothing was decided or changed') === true`,
    );
    const { owners } = (await organisation.ask('GET', '/owner/owners')).body;
    expect(owners).toHaveLength(1);
    // Only once, and not where a page was merely opened.
    await page.open(at('/console/team'));
    await page.until(`location.pathname === '/console/sign-in' && document.querySelector('h1') !== null`);
    expect(await page.value(`document.querySelector('#undone')`)).toBeNull();
  });

  test('no rule for some windows or devices is overridden by a general rule that follows it', async () => {
    await page.open(at('/console/sign-in'));
    const folders = ['broker/console/static', 'broker/docs/static'].map((folder) => join(ROOT, folder));
    const files = folders.flatMap((folder) => globSync(`${folder}/**/*.css`));
    expect(files.length).toBeGreaterThan(10);
    const overridden = await page.value<string[]>(
      `(${overriddenIn})(${JSON.stringify(
        files.map((file) => ({ name: relative(ROOT, file), text: readFileSync(file, 'utf8') })),
      )})`,
    );
    expect(overridden).toEqual([]);
    const one = [{ name: 'x', text: '@media (pointer: coarse) { a, b { color: red } } b { color: blue }' }];
    expect(await page.value(`(${overriddenIn})(${JSON.stringify(one)})`)).toEqual(['x: (pointer: coarse) b color']);
  });

  test('a used sign-in link redirects the browser that it signed in, and no other', async () => {
    const { url } = await signInLink(world.running.broker, organisation.owner);
    const own = await openPage({ width: 800, height: 600 });
    await own.open(url);
    await own.until(`location.pathname === '/console'`);
    await own.open(url);
    await own.until(`document.querySelector('#go-on') !== null && document.querySelector('#by-passkey') !== null`);
    expect(await own.value(`document.querySelector('#notice').innerText`)).toContain(organisation.owner.email);
    await own.click('#go-on');
    await own.until(`location.pathname === '/console'`);
    const stranger = await openPage({ width: 800, height: 600 });
    await stranger.open(url);
    await stranger.until(`document.querySelector('#notice .notice') !== null`);
    expect(await stranger.value(`document.querySelector('#go-on')`)).toBeNull();
  });

  test('AP-16 a link that somebody else sent does not sign the browser in as another owner without a question', async () => {
    const stranger = (await world.organisation({ name: 'Strangers' })).owner;
    const own = await openPage({ width: 800, height: 600 });
    const shownOwner = (email: string) =>
      own.until(`document.querySelector('.account .email')?.innerText === ${JSON.stringify(email)}`);
    await own.open((await signInLink(world.running.broker, organisation.owner)).url);
    await shownOwner(organisation.owner.email);
    const { url } = await signInLink(world.running.broker, stranger);
    await own.open(url);
    await own.until(`document.querySelector('#other-owner') !== null`);
    const asked = await own.value<string>(`document.querySelector('#notice').innerText`);
    for (const named of [organisation.owner.email, stranger.email, 'Strangers']) expect(asked).toContain(named);
    await own.click('#stay');
    await shownOwner(organisation.owner.email);
    await own.open(url);
    await own.click('#instead');
    await shownOwner(stranger.email);
  });

  test.each([
    'https://evil.example/console',
    '//evil.example/console',
    '/\\evil.example/console',
    'javascript:alert(1)',
    '/owner/agents',
    '/consoles',
    '/console/sign-in',
  ])('a stored redirect target that is not a console page is ignored: %s', async (place) => {
    const taken = await page.value(`import('/console/place.js').then(({ takePlace }) => {
      sessionStorage.setItem('svc-place', ${JSON.stringify(place)});
      return takePlace();
    })`);
    expect(taken).toBe('/console');
  });

  test('the libraries are modules that work under the policy of the pages', async () => {
    const shown = await page.value<string>(`import('/console/html.js').then(async ({ html, render, useState }) => {
      const Count = () => {
        const [count] = useState(7);
        return html\`<b title=\${'<i>'}>\${count} \${'<script>'}</b>\`;
      };
      const place = document.createElement('div');
      render(html\`<\${Count} />\`, place);
      return place.innerHTML;
    })`);
    expect(shown).toMatch(/^<b title="(<i>|&lt;i&gt;)">7 &lt;script&gt;<\/b>$/);
    const passkeys = await page.value<string[]>(
      `import('/console/vendor/simplewebauthn-browser.js').then((module) =>
        Object.entries(module).map(([name, value]) => name + ' ' + typeof value))`,
    );
    expect(passkeys).toContain('startAuthentication function');
    expect(passkeys.filter((name) => !name.endsWith(' function') && !name.startsWith('WebAuthnAbortService'))).toEqual(
      [],
    );
    expect(page.complaints.filter((complaint) => !complaint.includes('401'))).toEqual([]);
  });

  test('AP-14 invisible and bidirectional control characters are shown by their code points', async () => {
    const seen = (text: string, how = 'visible') =>
      page.value(`import('/console/visible.js').then((module) => module.${how}(${JSON.stringify(text)}))`);
    expect(await seen('a\u202eb\u2066c\u200bd\u0000e\ufefff')).toBe('a⟦U+202E⟧b⟦U+2066⟧c⟦U+200B⟧d⟦U+0000⟧e⟦U+FEFF⟧f');
    expect(await seen('\u3164 \u2800 \u00ad \u034f \u{e0041} \u{e0101} \ufe0e')).toBe(
      '⟦U+3164⟧ ⟦U+2800⟧ ⟦U+00AD⟧ ⟦U+034F⟧ ⟦U+E0041⟧ ⟦U+E0101⟧ ⟦U+FE0E⟧',
    );
    expect(await seen('Grüße, 東京 ⚠️ 👍')).toBe('Grüße, 東京 ⚠️ 👍');
    expect(await seen('one\ntwo\r')).toBe('one\ntwo⟦U+000D⟧');
    expect(await seen('one\ntwo', 'visibleLine')).toBe('one⟦U+000A⟧two');
  });

  test('a virtual authenticator can enrol a passkey, so that pages with passkeys can be tested', async () => {
    const authenticator = await page.authenticator();
    await page.value(`navigator.credentials.create({ publicKey: {
      challenge: new Uint8Array(16), rp: { id: 'localhost', name: 'x' },
      user: { id: new Uint8Array(16), name: 'x', displayName: 'x' }, pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
    } }).then(({ id }) => id)`);
    expect(await authenticator.credentials()).toHaveLength(1);
    await authenticator.remove();
  });

  test('an unchanged file is answered with 304', async () => {
    const first = await fetch(at('/console/base.css'));
    expect([first.status, first.headers.get('cache-control')]).toEqual([200, 'no-cache']);
    const again = await fetch(at('/console/base.css'), { headers: { 'if-none-match': first.headers.get('etag')! } });
    expect([again.status, await again.text()]).toEqual([304, '']);
    expect((await fetch(at('/console/base.css'), { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
  });

  test('in a checkout a page loads the source modules, and preloads all that it needs', () => {
    const served = readPages('/none');
    const paths = served.map(({ path }) => path);
    for (const { read } of served.filter(({ type }) => type.startsWith('text/html'))) {
      const named = [
        ...read()
          .toString()
          .matchAll(/(?:href|src)="([^"]+\.(?:js|css))"/g),
      ].map(([, path]) => path!);
      expect(named.length).toBeGreaterThan(3);
      expect(named.filter((path) => !paths.includes(path) || path.startsWith('/console/bundle'))).toEqual([]);
    }
    const page = served
      .find(({ path }) => path === '/console')!
      .read()
      .toString();
    expect(page).toContain('<link rel="modulepreload" href="/console/vendor/preact.js">');
  });

  test('a page preloads all modules that it needs, and each of them is served', async () => {
    const page = await (await fetch(at('/console'))).text();
    const named = [...page.matchAll(/(?:href|src)="([^"]+\.js)"/g)].map(([, path]) => path!);
    expect(named).toContain('/console/bundle/console.js');
    // Each module adds to the time that a page takes to open on a phone.
    expect(named.length).toBeLessThan(12);
    for (const path of named) {
      const response = await fetch(at(path));
      expect([path, response.status, response.headers.get('content-type')]).toEqual([
        path,
        200,
        'text/javascript; charset=utf-8',
      ]);
      const text = await response.text();
      // Only import statements, not the same words in markup.
      const statements = text.matchAll(/^(?:import|export)\b(?:[^'";=]*\bfrom)?\s*["']([^"']+)["']/gm);
      // An import is absolute, or relative to the module.
      const addresses = [...statements].map(([, from = '']) =>
        from.startsWith('.') ? new URL(from, at(path)).pathname : from,
      );
      if (path.endsWith('/console.js')) expect(addresses.length).toBeGreaterThan(0);
      expect(addresses.filter((from) => !named.includes(from))).toEqual([]);
    }
  });

  test('AP-16 no console page can be framed, and no inline script runs', async () => {
    for (const path of ['/console', '/console/sign-in', '/console/api.js']) {
      const { headers } = await fetch(at(path));
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(headers.get('content-security-policy')).not.toContain('unsafe');
    }
  });
});
