/** Warnings about whether the broker's links can be opened from elsewhere: by its base URL, and by its visitors. */
import { describe, expect, test } from 'vitest';
import { addressWarning, reachWarnings } from '../../broker/reach.ts';
import { expectStatus, send } from '../world/agent.ts';
import { givenWorld, shared } from '../world/world.ts';

test.each([
  ['http://localhost:8787', 'loopback'],
  ['https://localhost', 'loopback'],
  ['http://127.0.0.1:1', 'loopback'],
  ['http://[::1]:8787', 'loopback'],
  ['http://broker.localhost', 'loopback'],
  ['https://10.1.2.3', 'private'],
  ['https://192.168.1.7:8787', 'private'],
  ['https://[fd00::1]', 'private'],
  ['https://broker', 'private'],
  ['https://broker.local', 'private'],
  ['https://broker.internal', 'private'],
  ['http://broker.acme.example', 'plain_http'],
  ['http://93.184.216.34', 'plain_http'],
  ['https://broker.acme.example', undefined],
  ['https://machine.tailnet.ts.net', undefined],
  ['https://93.184.216.34', undefined],
])('the warning for the base URL %s is %s', (url, code) => {
  expect(addressWarning(url)?.code).toBe(code);
});

describe('visitors of the console', () => {
  const world = givenWorld('sqlite', { TRUSTED_PROXIES: '127.0.0.1' });
  const organisation = shared(() => world.demoOrganisation());
  const visit = (from?: string) =>
    send(`${world.running.baseUrl}/console`, { headers: from === undefined ? {} : { 'x-forwarded-for': from } });
  const warnings = async () =>
    (await reachWarnings({ ...world.running.broker, baseUrl: 'https://broker.acme.example' })).map(({ code }) => code);

  test('a visit from another machine within a day clears the warning', async () => {
    expect(await warnings()).toEqual(['nobody_from_elsewhere']);
    await visit();
    await visit('127.0.0.1');
    await visit('::1');
    expect(await warnings()).toEqual(['nobody_from_elsewhere']);
    await visit('203.0.113.9');
    await expect.poll(warnings).toEqual([]);
    world.clock.skewMs = 25 * 3600 * 1000;
    expect(await warnings()).toEqual(['nobody_from_elsewhere']);
  });

  test('owners of any role can read the warnings', async () => {
    const viewer = await organisation.addOwner('viewer');
    const { body } = await expectStatus(200, organisation.ask('GET', '/owner/reach', undefined, viewer));
    expect(body).toMatchObject({ base_url: world.running.baseUrl, warnings: [{ code: 'loopback' }] });
  });
});
