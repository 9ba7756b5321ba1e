/** Requests that try to deceive the deciding person, and pages of other sites that try to decide for them. */
import { beforeAll, expect, test } from 'vitest';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { signInByLink } from '../world/browser/console.ts';
import { complaintsOf, hold, isDisabled, linkOf, openHeld, PHONE, pictures, text } from '../world/browser/held-page.ts';
import { sized } from '../world/runner/thorough.ts';
import { givenWorld, shared } from '../world/world.ts';

const MARKUP = [
  `</p><script>document.title='owned'</script>`,
  `<img src=x onerror="document.title='owned'">`,
  `<a href="javascript:document.title='owned'">Approve</a>`,
  `<style>*{display:none}</style>`,
  `"><iframe src="//evil.example"></iframe>`,
].join('\n');

describeInChromium('hostile requests', () => {
  const world = givenWorld();
  const organisation = shared(() => world.organisation());
  beforeAll(async () => {
    const scopes = { 'demo:write': ['POST /items', 'POST /items/*'] };
    const recipients = { 'POST /items': ['/to/*'], 'POST /items/*': ['/to/*'] };
    await organisation.platform({ manifest: { scopes, recipients } });
  });
  const agent = shared(() => organisation.agent());
  const page = shared(async () => await (await startBrowser()).page(PHONE));
  beforeAll(async () => {
    await page.resize(PHONE, 'phone');
    await signInByLink(page, world, organisation.owner);
  });

  /** In the page: whether the decision buttons are completely within the window. */
  const inReach = () =>
    page.value<boolean>(`[...document.querySelectorAll('.choices button')].every((button) => {
      const { top, bottom, left, right } = button.getBoundingClientRect();
      const at = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
      return top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth && button.contains(at);
    })`);
  const fits = () => page.value<boolean>('document.documentElement.scrollWidth <= innerWidth');

  test('AP-13 markup in the reason, the body, its names and headers is displayed as text', async () => {
    const id = await hold(agent, {
      reason: MARKUP,
      data: { [MARKUP]: MARKUP, list: [MARKUP] },
      headers: { 'X-Note': '<script>1</script>' },
      endpoint: `/items?q=${encodeURIComponent('<script>document.title=1</script>').replaceAll("'", '%27')}`,
    });
    await openHeld(page, world, id);
    const shown = await text(page, '.request-view');
    expect(shown.split(`</p><script>document.title='owned'</script>`).length - 1).toBe(4);
    expect(shown).toContain('<script>document.title=1</script>');
    expect(await page.value('document.title')).toBe('Approve · Agent Broker');
    const made = '.request-view :is(script, img, iframe, style, [href^="javascript"], [onerror])';
    expect(await page.value(`document.querySelectorAll('${made}').length`)).toBe(0);
    await page.value(`document.querySelector('.as-text').click()`);
    await page.until(`document.querySelector('.lines.tall') !== null`);
    expect(await text(page, '.lines.tall')).toContain('<img src=x');
    expect(await page.value('document.title')).toBe('Approve · Agent Broker');
  });

  test('AP-13 no page of ours contains inline script or style', async () => {
    for (const path of [
      linkOf(world, '00000000-0000-4000-8000-000000000000'),
      `${world.running.baseUrl}/console/passkeys`,
    ]) {
      const response = await fetch(path);
      const policy = response.headers.get('content-security-policy');
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toContain('unsafe');
      expect(response.headers.get('referrer-policy')).toBe('no-referrer');
      const document = await response.text();
      expect(document).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=/);
    }
  });

  test('AP-14 invisible and direction-changing characters are shown as code points everywhere', async () => {
    const hidden = 'a\u202eb\u2066c\u200bd\u0000e';
    const shown = 'a⟦U+202E⟧b⟦U+2066⟧c⟦U+200B⟧d⟦U+0000⟧e';
    const id = await hold(agent, {
      data: { [`name ${hidden}`]: `value ${hidden}`, to: [`x\u200b@acme.example`], lines: `one\n${hidden}` },
      reason: 'reason a\u202eb\u2066c\u200bd',
      endpoint: `/items?q=${encodeURIComponent('q a\u202eb')}`,
    });
    await openHeld(page, world, id);
    const view = await text(page, '.request-view');
    expect(view).toContain(`name ${shown}`);
    expect(view).toContain(`value ${shown}`);
    expect(view).toContain(`one\n${shown}`);
    expect(view).toContain('reason a⟦U+202E⟧b⟦U+2066⟧c⟦U+200B⟧d');
    expect(view).toContain('q a⟦U+202E⟧b');
    expect(view).toContain('x⟦U+200B⟧@acme.example');
    expect(view).toContain('4 invisible characters');
    expect(view).not.toMatch(/[\u202e\u2066\u200b]/);
    await page.click('.as-text');
    expect(await text(page, '.lines.tall')).toContain('⟦U+202E⟧');
  });

  test('AP-14 mixed alphabets, lookalike letters and lookalike domains are marked', async () => {
    const id = await hold(agent, {
      // The first letter of the domains is Cyrillic.
      data: {
        to: ['ann@acme.example', 'eve@\u0430cme.example', 'bob@\u0430\u0440\u0440\u04cf\u0435.example', '\uff41nn'],
      },
      endpoint: `/items/${encodeURIComponent('p\u0430yments')}`,
    });
    await openHeld(page, world, id);
    const odd = await page.value<string[]>(`[...document.querySelectorAll('.odd')].map((one) => one.innerText)`);
    expect(odd).toHaveLength(4);
    expect(await text(page, '.reads-as')).toBe('/items/p\u0430yments');
    expect(odd[0]).toContain('mixes Latin and Cyrillic letters');
    expect(odd.join(' ')).toMatch(/“\u0430cme” mixes Latin and Cyrillic letters\. Its domain is xn--cme-\w+\.example/);
    expect(odd.join(' ')).toMatch(/Its domain is xn--\w+\.example/);
    expect(odd.join(' ')).toContain('in plain ones it is “ann”');
    // Suspicious recipients come first.
    expect(await text(page, '.recipients li:last-child')).toBe('ann@acme.example');
    await pictures(page, 'approve-lookalikes');
  });

  test('AP-14 facts of the broker come first and are separated from the agent’s text', async () => {
    const id = await hold(agent, {
      reason: 'System: already approved by Alice\n\nHeld by\nnobody\n\nRecipients\nnone',
      data: { 'Held by': 'nobody', System: 'already approved by Alice' },
    });
    await openHeld(page, world, id);
    const where = await page.value<Record<string, boolean>>(`(() => {
      const parts = [...document.querySelectorAll('.request-view > .part')];
      const theirs = parts.filter((part) => part.classList.contains('from-agent'));
      const says = (part) => part.innerText.includes('already approved by Alice');
      return {
        firstIsOurs: !parts[0].classList.contains('from-agent') && parts[0].innerText.includes('/items'),
        ruleIsOurs: document.querySelector('.request-view > .details').textContent.includes('requires an approval'),
        onlyInTheirs: parts.filter(says).every((part) => theirs.includes(part)) && theirs.filter(says).length === 2,
        headingIsOurs: document.querySelector('.has-reason h2').innerText === 'The agent’s own words',
      };
    })()`);
    expect(where).toEqual({ firstIsOurs: true, ruleIsOurs: true, onlyInTheirs: true, headingIsOurs: true });
  });

  test('AP-14 ten thousand lines push nothing off the page, and hide nothing', async () => {
    const lines = `harmless${'\n'.repeat(10_000)}and then delete everything`;
    const id = await hold(agent, {
      data: { note: lines, spaces: `harmless${' '.repeat(900)}and pay Eve` },
      reason: `because${'\n'.repeat(900)}System: approved`,
    });
    await openHeld(page, world, id);
    expect(await inReach()).toBe(true);
    expect(await fits()).toBe(true);
    expect(await isDisabled(page, '.choices .approve')).toBe(true);
    await page.click('.show-everything');
    await page.until(`document.querySelector('.folded') === null`);
    expect(await page.value(`[...document.querySelectorAll('.lines')].every((box) => box.tabIndex === -1)`)).toBe(true);
    const boxes = await page.value<number[]>(`[...document.querySelectorAll('.lines')].map((box) => box.clientHeight)`);
    expect(Math.max(...boxes)).toBeLessThanOrEqual(200);
    // The text after the empty lines follows directly below the note about them.
    const seen = await page.value<string[]>(`[...document.querySelectorAll('.lines')]
      .filter((box) => box.scrollHeight <= box.clientHeight).map((box) => box.innerText)`);
    expect(seen.join('\n')).toMatch(/harmless\s+9,999 empty lines\s+and then delete everything/);
    expect(seen.join('\n')).toMatch(/harmless\s*900 spaces\s*and pay Eve/);
    expect(seen.join('\n')).toMatch(/because\s+899 empty lines\s+System: approved/);
    expect(await inReach()).toBe(true);
    expect(await isDisabled(page, '.choices .approve')).toBe(false);
    await pictures(page, 'approve-lines');
  });

  test('a text that fits in a wide window can be scrolled by keyboard in a narrow one', async () => {
    const id = await hold(agent, { data: { note: `All is well:\n${'harmless '.repeat(48)}and delete everything` } });
    await page.resize({ width: 1280, height: 800 }, 'window');
    await openHeld(page, world, id);
    const tabIndexes = `[...document.querySelectorAll('.lines')].map((box) => box.tabIndex)`;
    expect(await page.value(tabIndexes)).toEqual([-1]);
    await page.resize({ width: 320, height: 568 }, 'phone');
    await page.until(`${tabIndexes}.every((one) => one === 0)`);
    await page.resize(PHONE, 'phone');
  });

  test(`AP-15 ${sized(250, 900)} KB with the dangerous field far inside: it cannot be approved before all of it was displayed`, async () => {
    const rows = Array.from({ length: sized(2_500, 9_000) }, (_, n) => ({
      id: n,
      text: `row ${n} ${'x'.repeat(64)}`,
    }));
    rows[sized(2_000, 8_000)]!.text = 'and transfer everything to Eve';
    const data = { rows, letter: 'y'.repeat(20_000) };
    const bytes = JSON.stringify(data).length;
    expect(bytes).toBeGreaterThan(sized(235_000, 860_000));
    const id = await hold(agent, { data });
    await openHeld(page, world, id);
    const shown = await text(page, '.has-body');
    expect(shown).toContain('Not all of it is shown');
    expect(shown).toContain(`${(bytes / 1000).toFixed(1)} kB`);
    const { request_hash } = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    expect(shown).toContain(request_hash);
    expect(shown).not.toContain('Eve');
    expect(await isDisabled(page, '.choices .approve')).toBe(true);
    expect(await page.value(`document.querySelectorAll('.request-view *').length`)).toBeLessThan(2_000);
    await pictures(page, 'approve-large');
    // The body is downloaded once, however long the page stays open.
    const sizes = `performance.getEntriesByType('resource').filter(({ name }) => /.request($|[?])/.test(name)).map((one) => one.decodedBodySize)`;
    await page.until(`${sizes}.length > 1`);
    const [first, ...others] = await page.value<number[]>(sizes);
    expect(first).toBeGreaterThan(bytes);
    expect(Math.max(...others)).toBeLessThan(5_000);
    // Opening some of the folds is not enough.
    await page.click('.tree .long button');
    await page.until(`document.querySelector('.tree .lines') !== null`);
    // Content that is longer than its box can be scrolled by keyboard.
    expect(await page.value(`document.querySelector('.tree .lines').tabIndex`)).toBe(0);
    expect(await isDisabled(page, '.choices .approve')).toBe(true);
    expect(await page.value(`document.querySelector('a[download]').href`)).toMatch(/^blob:/);
    await page.click('a[download]');
    await page.click('.show-everything');
    await page.until(`document.querySelector('.lines.tall') !== null`);
    expect(
      await page.value(`document.querySelector('.lines.tall').textContent.includes('transfer everything to Eve')`),
    ).toBe(true);
    expect(await inReach()).toBe(true);
    expect(await isDisabled(page, '.choices .approve')).toBe(false);
    await pictures(page, 'approve-large-shown');
    await page.click('.choices .approve');
    await page.click('dialog #approve');
    await page.until(`/^Approved\\n[^]*The call was made/.test(document.querySelector('.outcome')?.innerText)`);
    expect(JSON.parse(world.upstream.seen[0]!.body)).toEqual(data);
  });

  test('AP-15 each folded part can also be opened by itself', async () => {
    const id = await hold(agent, {
      data: {
        letter: `Dear Ann,\n${'blah '.repeat(400)}`,
        [`k${'e'.repeat(1_500)}y`]: 1,
        list: Array.from({ length: 260 }, (_, n) => n),
        deep: { a: { b: Array.from({ length: 50 }, (_, n) => ({ n })) } },
      },
    });
    await openHeld(page, world, id);
    expect(await isDisabled(page, '.choices .approve')).toBe(true);
    for (let n = 0; n < 20 && (await page.value<boolean>(`document.querySelector('.tree button') !== null`)); n++) {
      expect(await isDisabled(page, '.choices .approve')).toBe(true);
      await page.value(`document.querySelector('.tree button').click()`);
      await page.value('new Promise(requestAnimationFrame)');
    }
    await page.until(`document.querySelector('.folded') === null`);
    expect(await isDisabled(page, '.choices .approve')).toBe(false);
    expect(await text(page, '.tree')).toContain('259');
  });

  test('a hundred recipients are folded, suspicious ones first, and all have to be displayed before Approve', async () => {
    const to = Array.from({ length: 100 }, (_, n) => `person-${n}@acme.example`);
    const id = await hold(agent, { data: { to: [...to, 'eve@\u0430cme.example'] } });
    await openHeld(page, world, id);
    expect(await text(page, '.recipients li:first-child')).toContain('eve@');
    expect(await isDisabled(page, '.choices .approve')).toBe(true);
    await page.click('.recipients + button');
    await page.until(`document.querySelectorAll('.recipients li').length === 101`);
    expect(await isDisabled(page, '.choices .approve')).toBe(false);
  });

  test('ten thousand recipients, or a very long one, leave the page usable', async () => {
    const to = Array.from({ length: 10_000 }, (_, n) => `person-${n}@acme.example`);
    const id = await hold(agent, { data: { to: [...to, { address: 'b'.repeat(200_000) }] } });
    await openHeld(page, world, id);
    await page.click('.recipients + button');
    await page.until(`document.querySelector('.recipients ~ .lines')?.textContent.includes('person-9999@')`);
    expect(await page.value(`document.querySelectorAll('.recipients li').length`)).toBe(12);
    await page.click('.show-everything');
    await page.until(`document.querySelector('.choices .approve').disabled === false`);
    expect(await fits()).toBe(true);
    expect(await page.value(`document.querySelector('main').scrollHeight`)).toBeLessThan(8_000);
  });

  test('a body of maximum depth, or with very long names, stays within 360 px', async () => {
    let data: Record<string, unknown> = { end: 'reached' };
    for (let depth = 0; depth < 60; depth++) data = { [`level ${depth}`]: data };
    const id = await hold(agent, {
      data: { ...data, [`${'wide'.repeat(200)}`]: 'w'.repeat(900) },
      endpoint: `/items?${'q'.repeat(3_000)}=${'v'.repeat(3_000)}`,
      headers: { 'X-Wide': 'h'.repeat(2_000) },
    });
    await page.resize({ width: 360, height: 640 }, 'phone');
    await openHeld(page, world, id);
    expect(await text(page, '.tree')).toContain('reached');
    expect(await fits()).toBe(true);
    expect(await inReach()).toBe(true);
    await page.resize(PHONE, 'phone');
  });

  test('a message in base64 is also shown decoded', async () => {
    const message = 'To: eve@evil.example\r\nSubject: hello\r\n\r\nAll our secrets.';
    const id = await hold(agent, { data: { raw: Buffer.from(message).toString('base64url') } });
    await openHeld(page, world, id);
    expect(await text(page, '.reading')).toContain('All our secrets.');
  });

  test('AP-16 no page of ours can be framed', async () => {
    const id = await hold(agent);
    const link = linkOf(world, id);
    for (const path of [link, `${link}/request`, `${world.running.baseUrl}/console/passkeys`]) {
      const { headers } = await fetch(path);
      if (headers.get('content-type')!.startsWith('text/html')) {
        expect(headers.get('x-frame-options')).toBe('DENY');
        expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      }
      expect(headers.get('access-control-allow-origin')).toBeNull();
    }
    world.upstream.answer = (_request, response) => {
      response.setHeader('content-type', 'text/html').end(`<h1>Win a prize</h1><iframe src="${link}"></iframe>`);
    };
    const other = await (await startBrowser()).page(PHONE);
    await other.open(world.upstream.url);
    await other.until(`document.querySelector('iframe') !== null`);
    const end = Date.now() + 15_000;
    while (!other.complaints.some((complaint) => /frame/i.test(complaint)) && Date.now() < end)
      await new Promise((again) => setTimeout(again, 50));
    expect(other.complaints.join('\n')).toMatch(/frame/i);
  });

  test('AP-16 forms, images and scripts of other sites decide nothing, with a session or without', async () => {
    const id = await hold(agent);
    const { baseUrl } = world.running;
    world.upstream.answer = (_request, response) => {
      response.setHeader('content-type', 'text/html').end('<h1>elsewhere</h1>');
    };
    await page.open(world.upstream.url);
    await page.until(`document.body.innerText.includes('elsewhere')`);
    const attempts = await page.value<string[]>(`Promise.all([
      ['POST', '/owner/approvals/${id}/approve', 'text/plain'],
      ['POST', '/owner/approvals/${id}/approve', 'application/json'],
      ['POST', '/v1/approvals/passkeys/sign/begin', 'application/json'],
      ['GET', '/owner/approvals/${id}/approve'],
      ['GET', '/approve/${id}/request'],
    ].map(([method, path, type]) => fetch('${baseUrl}' + path, {
      method, credentials: 'include', ...(type && { body: '{}', headers: { 'Content-Type': type } }),
    }).then(({ type }) => type, () => 'refused')))`);
    expect(attempts).toEqual(['refused', 'refused', 'refused', 'refused', 'refused']);
    await page.value(`(() => {
      const form = document.createElement('form');
      form.method = 'post';
      form.enctype = 'text/plain';
      form.action = '${baseUrl}/owner/approvals/${id}/approve';
      document.body.append(form);
      form.submit();
    })()`);
    await page.until(
      `location.origin === '${baseUrl}' && /missing_token|forbidden/.test(document.body?.innerText ?? '')`,
    );
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('pending');
  });

  test('AP-16 opening the page decides nothing', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('pending');
  });

  test('no page violated its Content-Security-Policy', () => {
    const ours = complaintsOf(page).filter(
      (complaint) => !/CORS|ERR_FAILED|status of 403|status of 400/.test(complaint),
    );
    expect(ours).toEqual([]);
  });
});
