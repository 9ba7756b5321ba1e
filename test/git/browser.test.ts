/** A link to `/git` with a token in it, opened by a signed-in owner: nothing runs on the console's origin. */
import { beforeAll, expect, test } from 'vitest';
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import { describeInChromium, openPage } from '../world/browser/chromium.ts';
import { remoteOf, startGitWorld } from '../world/git-world.ts';
import { shared } from '../world/world.ts';

const ADVERTISEMENT = '/info/refs?service=git-upload-pack';

describeInChromium('a real browser', () => {
  const given = shared(() => startGitWorld('sqlite'));
  beforeAll(async () => {
    given.host.answer = (_, response) =>
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(`<script>document.title = 'ran'; fetch('/owner/me')</script>`);
  });

  test('shows one line, sends nothing to the code host, and runs nothing', async () => {
    const { baseUrl, broker } = given.world.running;
    const agent = await given.agent();
    const page = await openPage({ width: 800, height: 600 });
    await page.open((await signInLink(broker, given.organisation.owner)).url);
    await page.until(`location.pathname === '/console'`);
    await page.open(`${remoteOf(agent, 'acme/app')}${ADVERTISEMENT}`);
    await page.until(`location.pathname.startsWith('/git/') && document.readyState === 'complete'`);
    expect(await page.value(`document.body.innerText`)).toContain('agent-broker: forbidden - ');
    expect(await page.value(`document.title`)).not.toBe('ran');
    // A page of the broker's own origin gets nothing with the token either.
    await page.open(`${baseUrl}/console/base.css`);
    const authorization = `Basic ${btoa(`x:${agent.token()}`)}`;
    const fetched = `fetch('/git/acme/app${ADVERTISEMENT}', { headers: { authorization: '${authorization}' } }).then((one) => one.status)`;
    expect(await page.value(fetched)).toBe(403);
    expect(given.host.seen).toEqual([]);
  });
});
