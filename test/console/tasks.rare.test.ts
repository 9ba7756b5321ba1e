/**
 * Rare tasks of an owner: people, OAuth, MCP clients, passkeys, retention. With the keyboard alone, each dialog checked with axe; in a thorough run
 * once more with the mouse alone, which the files of these pages use (people, connections, clients, settings, approvals/page.passkeys).
 */
import { describe, expect, test } from 'vitest';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { browserOf, pressConnect } from '../world/browser/connecting.ts';
import { DESKTOP, goTo, openConsole, says } from '../world/browser/console.ts';
import { type InputDevice, keyboard, mouse } from '../world/browser/input-device.ts';
import { browserOf as personOf } from '../world/mcp/person.ts';
import { OAuthClient } from '../world/oauth-client.ts';
import { consentAsserted } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { thorough } from '../world/runner/thorough.ts';
import { shared } from '../world/world.ts';

describeInChromium(
  'rare tasks of an owner',
  () => {
    const { server, world, organisation, act, connected } = givenPeople('sqlite');
    const browser = shared(() => startBrowser());
    const closed = (page: Page) => page.until(`document.querySelector('dialog') === null`);
    const ask = (method: string, path: string) => organisation.ask(method, path);

    describe.each(thorough ? (['keyboard', 'mouse'] as const) : (['keyboard'] as const))('with the %s alone', (by) => {
      /** Opens the console at a page. Returns the input helpers, and `look`, which checks the open dialog with axe. */
      const begin = async (path: string, prepare?: (page: Page) => Promise<unknown>) => {
        const page = await openConsole(world, browser, organisation.owner);
        await prepare?.(page);
        await goTo(page, world.running.baseUrl + path);
        const input: InputDevice = (by === 'keyboard' ? keyboard : mouse)(page);
        const look = async (name: string, within = 'dialog') => {
          await page.until(
            `document.querySelector('${within}') !== null && !document.querySelector('${within} .loading')`,
          );
          if (by === 'mouse') return;
          await expectAccessible(page, name, within);
          await page.resize(DESKTOP);
        };
        /** Closes the dialog by Escape, without a change. */
        const leave = async () => {
          await page.press('Escape');
          await closed(page);
          // The window was resized, so the focused element may be out of view.
          await page.value(`document.activeElement.scrollIntoView({ block: 'center' })`);
        };
        return { ...input, look, leave };
      };

      test('an account of a person is confirmed, and the connections of people are ended', async () => {
        const { body } = await act(slack('U-ANN'));
        await consentAsserted(server, body.consent_url, 'ann');
        const { page, use, fill, look, leave } = await begin('/console/people');
        await use('.confirm');
        await look('confirming an account');
        await leave();
        expect((await act(slack('U-ANN'))).status).toBe(412);
        await use('.confirm');
        await fill('#compare', 'slack:U-BOB');
        await use('#confirm-account');
        await page.until(`document.querySelector('dialog [role=alert]')?.innerText.includes('for somebody else')`);
        await look('an account of somebody else');
        await fill('#compare', 'slack:U-ANN');
        await use('#confirm-account');
        await says(page, 'The account is confirmed');
        expect((await act(slack('U-ANN'))).status).toBe(200);
        await connected(slack('U-BOB'), 'bob');
        await closed(page);
        await fill('#person', 'slack:U-ANN');
        await use('#end-person');
        await look('ending what a person gave');
        await leave();
        expect((await act(slack('U-ANN'))).status).toBe(200);
        await fill('#person', 'slack:U-ANN');
        await use('#end-person');
        await use('#end');
        await says(page, 'Ended 1,');
        expect([(await act(slack('U-ANN'))).status, (await act(slack('U-BOB'))).status]).toEqual([412, 200]);
        await closed(page);
        await use('#end-all');
        await use('#end');
        await says(page, 'Ended 1,');
        expect((await act(slack('U-BOB'))).status).toBe(412);
      });

      test('a connection is disconnected', async () => {
        const { connections } = (await ask('GET', '/owner/connections')).body;
        const person = browserOf(world, organisation.owner);
        const begun = await pressConnect(world, person, connections[0].id);
        await server.consent(person, 'ann', begun.body.authorization_url);
        const state = async () => (await ask('GET', '/owner/connections')).body.connections[0].state;
        expect(await state()).toBe('connected');
        const { page, use, look, leave } = await begin('/console/connections');
        await use('.disconnect');
        await look('disconnecting');
        await leave();
        expect(await state()).toBe('connected');
        await use('.disconnect');
        await use('#disconnect');
        await says(page, 'is disconnected');
        expect(await state()).toBe('not_connected');
      });

      test('the access of an MCP client is revoked', async () => {
        const client = new OAuthClient(world);
        await client.register({ client_name: 'Cursor' });
        await client.tokens(personOf(world, organisation.owner));
        const live = async () => (await ask('GET', '/owner/mcp-authorisations')).body.authorisations[0].ended_because;
        const { page, use, look, leave } = await begin('/console/clients');
        await use('.revoke');
        await look('revoking an MCP client');
        await leave();
        expect(await live()).toBe(null);
        await use('.revoke');
        await use('#revoke');
        await says(page, 'is revoked.');
        expect(await live()).not.toBe(null);
      });

      test('a passkey is added, renamed and removed', async () => {
        const { page, use, fill, look, leave } = await begin('/console/passkeys', (on) => on.authenticator());
        const passkeys = async () => (await ask('GET', '/owner/passkeys')).body.passkeys;
        await page.until(`document.querySelector('#device') !== null`);
        await look('adding a passkey', 'main');
        await fill('#device', 'Phone');
        await use('.enrol button[type="submit"]');
        await says(page, '“Phone” can');
        expect(await passkeys()).toMatchObject([{ device_name: 'Phone' }]);
        await use('#passkeys .rename');
        await look('renaming a passkey');
        await leave();
        await use('#passkeys .rename');
        await fill('dialog #name', 'Old phone');
        await use('dialog [type="submit"]');
        await says(page, 'It is called “Old phone” now.');
        await closed(page);
        expect(await passkeys()).toMatchObject([{ device_name: 'Old phone' }]);
        await use('#passkeys .danger');
        await look('removing a passkey');
        await leave();
        expect(await passkeys()).toHaveLength(1);
        await use('#passkeys .danger');
        await use('dialog [type="submit"]');
        await says(page, 'is no longer accepted');
        expect(await passkeys()).toEqual([]);
      });

      test('the retention of the audit is shortened only after another confirmation', async () => {
        const kept = async () => (await ask('GET', '/owner/organisation')).body.retention.reads_days;
        const { page, use, fill, look, leave } = await begin('/console/settings');
        await fill('#reads_days', '45');
        await use('#save-retention');
        await look('deleting what is older');
        await leave();
        expect(await kept()).toBe(null);
        await use('#save-retention');
        await use('#delete-older');
        await says(page, 'How long the audit is kept is changed.');
        expect(await kept()).toBe(45);
      });
    });
  },
  120_000,
);
