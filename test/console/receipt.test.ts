/** Receipts read and verified in the browser: a genuine one and tampered ones, with the mouse alone and the keyboard alone. */
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { verifyReceipt as verifyOffline } from '../../broker/audit/verify-receipt.ts';
import { canVerify, receiptIn, verifyReceipt, withJson } from '../../broker/console/static/receipt/verify.js';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, goTo, openConsole, PHONE, tabTo } from '../world/browser/console.ts';
import { auditIdOf } from '../world/evidence.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
const agent = shared(() => organisation.agent({ name: 'triage' }));
let [id, jws, keys] = ['', '', { keys: [] as { kid: string }[] }];
beforeAll(async () => {
  id = auditIdOf(await agent.act({ ...READ, reason: 'To look.' }));
  jws = (await organisation.ask('GET', `/v1/audit/${id}/receipt`)).body.receipt;
  keys = (await organisation.ask('GET', '/.well-known/svc-receipt-keys.json')).body;
});

/** Returns the receipt with another payload or header under the same signature. */
function changed(part: 0 | 1, change: (value: Record<string, unknown>) => void): string {
  const parts = jws.split('.');
  const value = JSON.parse(Buffer.from(parts[part]!, 'base64url').toString());
  change(value);
  parts[part] = Buffer.from(JSON.stringify(value)).toString('base64url');
  return parts.join('.');
}

describe('verifying a receipt with WebCrypto gives the result of the command line', () => {
  test('a genuine receipt is valid', async () => {
    expect(canVerify()).toBe(true);
    const checked = await verifyReceipt(jws, keys.keys);
    expect(checked).toMatchObject({ ok: true, kid: keys.keys[0]!.kid, payload: { jti: id, result: 'allowed' } });
    expect(receiptIn(JSON.stringify({ receipt: jws }))).toBe(jws);
    expect(receiptIn('{}')).toBeUndefined();
  });

  test('the JSON of the route with another audit id or key beside a genuine receipt is refused', async () => {
    const json = (await organisation.ask('GET', `/v1/audit/${id}/receipt`)).body;
    const checked = await verifyReceipt(jws, keys.keys);
    for (const [change, ok] of [
      [{}, true],
      [{ audit_id: '01a1f7f2-7347-73d4-80b3-7a1b98655fba' }, false],
      [{ kid: 'another' }, false],
      [{ did: 'did:web:an-earlier-address.example' }, true],
    ] as const) {
      const text = JSON.stringify({ ...json, ...change });
      const error = ok ? {} : { error: expect.stringContaining('of its JSON is not that of the signed receipt') };
      expect(withJson(text, checked)).toMatchObject({ ok, ...error });
      expect(verifyOffline(text, JSON.stringify(keys))).toMatchObject({ ok, ...error });
    }
  });

  const TAMPERED: [string, () => string][] = [
    ['another path', () => changed(1, (payload) => Object.assign(payload, { path: '/items/2' }))],
    ['another result', () => changed(1, (payload) => Object.assign(payload, { result: 'denied' }))],
    ['no algorithm', () => changed(0, (header) => Object.assign(header, { alg: 'none' }))],
    ['a symmetric algorithm', () => changed(0, (header) => Object.assign(header, { alg: 'HS256' }))],
    ['another type', () => changed(0, (header) => Object.assign(header, { typ: 'JWT' }))],
    ['a key of its own', () => changed(0, (header) => Object.assign(header, { jwk: keys.keys[0] }))],
    ['an unknown key', () => changed(0, (header) => Object.assign(header, { kid: 'x' }))],
    ['a truncated signature', () => jws.slice(0, -4)],
    ['a signature of zeros', () => `${jws.slice(0, jws.lastIndexOf('.'))}.${'A'.repeat(86)}`],
    [
      'unused bits that are not zero in the last character',
      () => `${jws.slice(0, -1)}${jws.endsWith('A') ? 'B' : nextOf(jws.at(-1)!)}`,
    ],
    ['padding', () => `${jws}==`],
    ['two parts', () => jws.split('.').slice(0, 2).join('.')],
    ['four parts', () => `${jws}.x`],
    ['three empty parts', () => '..'],
  ];
  const nextOf = (last: string) => {
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    return letters[letters.indexOf(last) + 1]!;
  };
  test.each(TAMPERED)('%s is refused', async (_what, made) => {
    const { ok, error } = await verifyReceipt(made(), keys.keys);
    expect(verifyOffline(made(), JSON.stringify(keys)).ok).toBe(false);
    expect({ ok, error }).toEqual({ ok: false, error: expect.any(String) });
  });

  test('a different key under the same key id is refused', async () => {
    const other = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
    const jwk = await crypto.subtle.exportKey('jwk', other.publicKey);
    expect(await verifyReceipt(jws, [{ ...jwk, kid: keys.keys[0]!.kid } as never])).toMatchObject({ ok: false });
  });
});

describeInChromium('receipts in the console', () => {
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const go = (path: string) => goTo(page, world.running.baseUrl + path);
  const verdict = (valid: boolean) => page.until(`document.querySelector('#verdict')?.dataset.valid === '${valid}'`);
  const textOf = (selector: string) => page.value<string>(`document.querySelector('${selector}').innerText`);
  /** Presses Tab until the element has the focus. */
  test('with the mouse alone from the activity: the receipt is shown, valid and unchanged, with its key and the limits of the check', async () => {
    await go('/console/activity?result=allowed');
    await page.click('#activity summary');
    await page.click('#activity .facts a[href^="/console/receipt"]');
    await verdict(true);
    expect(await textOf('#verdict')).toContain('Signature valid.');
    await page.until(`document.querySelector('#row-unchanged') !== null`);
    await page.until(`document.querySelector('#key')?.innerText.includes('has signed since')`);
    const says = await textOf('#says');
    for (const words of ['triage', 'GET /items', 'demo:read', 'Policy “', id]) expect(says).toContain(words);
    expect(await textOf('#limits')).toContain('no other row is missing');
    await expectAccessible(page, 'a receipt');
    expect(page.complaints).toEqual([]);
  });

  test('with the keyboard alone: a receipt is verified, and a tampered one is invalid', async () => {
    await go('/console/activity?result=allowed');
    await page.until(`document.querySelector('#activity summary') !== null`);
    await page.value('document.activeElement.blur()');
    await tabTo(page, '#activity summary');
    await page.press('Enter');
    await page.until(`document.querySelector('#activity .facts') !== null`);
    await tabTo(page, 'a[href^="/console/receipt"]');
    await page.press('Enter');
    await verdict(true);
    await tabTo(page, '#receipt-text');
    await page.type(changed(1, (payload) => Object.assign(payload, { path: '/items/elsewhere' })));
    await tabTo(page, '#check');
    await page.press('Enter');
    await verdict(false);
    expect(await textOf('#verdict')).toContain('its signature does not match what it says');
    expect(await textOf('.receipt')).toContain('What it claims');
    expect(await textOf('#says')).toContain('/items/elsewhere');
    expect(await page.value(`document.querySelector('#limits')`)).toBeNull();
    await expectAccessible(page, 'an invalid receipt');
  });

  test('the receipt of a row that was changed in the database is invalid', async () => {
    const fresh = auditIdOf(await agent.act(READ));
    await sql`update audit_rows set path = '/items/never' where id = ${fresh}`.execute(world.db);
    await go(`/console/receipt?id=${fresh}`);
    await verdict(false);
  });

  test('a change of a column that is not in the receipt: the signature is valid, the row is reported as changed', async () => {
    const fresh = auditIdOf(await agent.act(READ));
    await sql`update audit_rows set detail = 'never said' where id = ${fresh}`.execute(world.db);
    await go(`/console/receipt?id=${fresh}`);
    await verdict(true);
    await page.until(`document.querySelector('#row-changed') !== null`);
  });

  test('the receipt of an approved call shows who approved it, and links to the receipt of the hold', async () => {
    const { body } = await agent.act(WRITE);
    const held = (await organisation.ask('GET', `/owner/approvals/${body.approval_id}`)).body;
    world.upstream.answer = (_request, response) => response.writeHead(404).end();
    await organisation.approve(body.approval_id, {
      request_hash: held.request_hash,
    });
    await go(`/console/activity?words=${body.approval_id}`);
    await page.until(`document.querySelectorAll('#activity .row').length === 1`);
    expect(await textOf('#activity .trail')).toMatch(
      new RegExp(`^held: .* → approved by ${organisation.owner.email}, with the API → made: status 404$`),
    );
    await page.click('#activity summary');
    await page.click('#activity .steps li[data-step="made"] a');
    await verdict(true);
    await page.until(`document.querySelector('#says').innerText.includes('Decided by ${organisation.owner.email}')`);
    // A person, not a rule, allowed the call; and the platform refused it.
    const says = await textOf('#says');
    expect(says).toContain(`Allowed · 404 approved by ${organisation.owner.email}, with the API`);
    expect(says).not.toContain('a rule allows it');
    expect(await page.value(`document.querySelector('#says .badge').dataset.kind`)).toBe('wait');
    await page.click('#says a[href^="/console/receipt"]');
    await page.until(`document.querySelector('#says')?.innerText.includes('Held')`);
    await verdict(true);
  });

  test('an empty page, a malformed id and an unknown id each show a message', async () => {
    await go('/console/receipt');
    await page.until(`document.querySelector('.other h2')?.innerText === 'Check a receipt'`);
    await expectAccessible(page, 'no receipt yet');
    await page.click('#receipt-text');
    await page.type('{}');
    await page.click('#check');
    await page.until(`document.querySelector('[role="alert"]')?.innerText.includes('neither a receipt')`);
    await go('/console/receipt?id=..%2F..%2Fowner');
    await page.until(`document.querySelector('[role="alert"]')?.innerText.includes('This is no audit id')`);
    await go(`/console/receipt?id=${crypto.randomUUID()}`);
    await page.until(`document.querySelector('[role="alert"]')?.innerText.includes('There is no such row')`);
  });

  test('pictures', async () => {
    for (const [name, size, as] of [
      ['desktop', DESKTOP, 'window'],
      ['phone', PHONE, 'phone'],
    ] as const) {
      await page.resize(size, as);
      await go(`/console/receipt?id=${id}`);
      await verdict(true);
      await page.until(`document.querySelector('#key')?.innerText.includes('has signed since')`);
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        // Wait until the colour transition has ended.
        await pause(250);
        await page.screenshot(`console-receipt-${name}-${scheme}.png`);
      }
      expect(await page.value('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    }
  });
});
