/** Owners and labels of agents in the console, with the keyboard alone on a phone; in a thorough run also with the mouse alone on a desktop. */
import { expect, test } from 'vitest';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, goTo, has, openConsole, PHONE, says } from '../world/browser/console.ts';
import { keyboard, mouse } from '../world/browser/input-device.ts';
import { thorough } from '../world/runner/thorough.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

describeInChromium('owners and labels of agents', () => {
  const world = givenWorld();
  const browser = shared(() => startBrowser());

  test.each([
    ['the keyboard', keyboard, PHONE] as const,
    ...(thorough ? [['the mouse', mouse, DESKTOP] as const] : []),
  ])('an admin labels agents, finds them, and hands them over, with %s', async (hand, input, size) => {
    const organisation = await world.demoOrganisation();
    const bob = await organisation.addOwner('approver');
    const one = await organisation.agent({ name: 'one <b>' });
    await organisation.agent({ name: 'two' });
    const page = await openConsole(world, browser, organisation.owner, size);
    const { use, fill, choose } = input(page);
    const look = async (name: string, within?: string) => {
      await expectAccessible(page, `${name} (${hand})`, within);
      for (const theme of ['light', 'dark'] as const) {
        await page.prefer(theme);
        await page.screenshot(`${name.replaceAll(' ', '-')}-${size.width}-${theme}.png`);
      }
      await page.prefer('light');
    };

    await goTo(page, `${world.running.baseUrl}/console/agents/${one.agentId}`);
    await use('#change-labels');
    await fill('#labels', 'Prod, <b>');
    await use('#save-labels');
    await has(page, 'dialog [role="alert"]', 'labels');
    await fill('#labels', 'Prod, team:billing');
    await look('labels of an agent', 'dialog');
    await use('#save-labels');
    await says(page, 'The labels of one <b> are changed.');
    await use('.labels a[href$="label=prod"]');
    await page.until(`location.search === '?label=prod'`);
    await has(page, '#fitting', '1 found');
    await look('agents by label');
    await choose('#by-label', '');
    await has(page, '#fitting', '2 agents');

    await use('nav a[href="/console/team"]');
    const mine = `[data-member="${organisation.owner.id}"] [data-verb="agents"]`;
    await use(mine);
    await choose('#hand-to', bob.id);
    await use('dialog input[value="some"]');
    await use(`dialog [data-agent="${one.agentId}"]`);
    await look('handing over agents', 'dialog');
    await use('#hand-over');
    await says(page, '1 agent is handed over');
    await page.until(`document.querySelector('dialog') === null`);
    // The accessibility checks resized the window, so the focused element may be out of view.
    await page.value(`document.querySelector(${JSON.stringify(mine)}).scrollIntoView({ block: 'center' })`);
    expect((await one.get('/v1/agents/me')).body.owner_id).toBe(bob.id);
    expect((await one.act(READ)).status).toBe(200);
    await use(mine);
    await has(page, 'dialog', 'All that are not revoked (1)');
    await use('#hand-over');
    await says(page, '1 agent is handed over');
    await use(mine);
    await has(page, '#no-agents', 'no agents');
    await use('#close-hand-over');
    await goTo(page, `${world.running.baseUrl}/console/activity`);
    await has(page, '#activity', 'handed over to another owner: ');
    await page.close();
  });
});
