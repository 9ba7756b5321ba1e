/** The public page that verifies an export of a receipt log, in a browser without a session. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test, vi } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP } from '../world/browser/console.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { newFolder } from '../world/stores.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

describeInChromium('verifying a receipt log in a browser', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const browser = shared(() => startBrowser());
  const page = shared(() => browser.page(DESKTOP));
  const folder = newFolder();
  const file = (name: string) => join(folder, name);
  let lines: string[];

  beforeAll(async () => {
    const agent = await organisation.agent();
    for (let at = 0; at < 3; at++) await agent.act(READ);
    await vi.waitUntil(
      async () => {
        const { size, waiting, checkpoint } = (await organisation.ask('GET', '/owner/log')).body;
        return waiting === 0 && size >= 3 && checkpoint?.size === size;
      },
      { timeout: scaledTimeout(30_000) },
    );
    const save = async (path: string, name: string) => {
      const headers = { authorization: `Bearer ${mintOwnerSession(world.running.broker, organisation.owner).token}` };
      const text = await (await fetch(`${world.running.baseUrl}${path}`, { headers })).text();
      writeFileSync(file(name), text);
      return text;
    };
    lines = (await save('/owner/log/export', 'log.jsonl')).trim().split('\n');
    await save(`/orgs/${organisation.id}/checkpoint`, 'checkpoint');
    await save(`/.well-known/svc-log/${organisation.id}`, 'key');
    await save('/.well-known/svc-receipt-keys.json', 'keys.json');
  });

  const choose = async (name: string, path: string) => {
    const { root } = await page.command('DOM.getDocument');
    const { nodeId } = await page.command('DOM.querySelector', { nodeId: root.nodeId, selector: `#file-${name}` });
    await page.command('DOM.setFileInputFiles', { nodeId, files: [path] });
  };
  const says = (text: string) =>
    page.until(`document.querySelector('#verdict').innerText.includes(${JSON.stringify(text)})`);

  test('an export verifies; a changed row is named; an invalid key is reported', async () => {
    await page.open(`${world.running.baseUrl}/verify`);
    await page.until(`document.querySelector('#verify-log') !== null`);
    await choose('log', file('log.jsonl'));
    await choose('key', file('key'));
    await choose('checkpoint', file('checkpoint'));
    await choose('receipt-keys', file('keys.json'));
    await page.click('#verify-log button');
    await says('Nothing was changed, removed, inserted or moved.');
    await says('receipts are of these rows, and genuine.');
    await expectAccessible(page, 'verifying a receipt log');
    const changed = lines.map((line) => (line.includes('"index":1,') ? line.replace('"allowed"', '"denied"') : line));
    expect(changed).not.toEqual(lines);
    writeFileSync(file('changed.jsonl'), changed.join('\n'));
    await choose('log', file('changed.jsonl'));
    await page.click('#verify-log button');
    await says('Row 1 is not what was logged.');
    await choose('key', file('keys.json'));
    await page.click('#verify-log button');
    await says('A line is not a verifier key');
    // Without the key set of the receipts, the page shows what it did not check.
    await page.open(`${world.running.baseUrl}/verify`);
    await page.until(`document.querySelector('#verify-log') !== null`);
    await choose('log', file('log.jsonl'));
    await choose('key', file('key'));
    await page.click('#verify-log button');
    await says('receipts are of these rows; their signatures were not checked');
    expect(page.complaints).toEqual([]);
  });
});
