/** An MCP client that is a web page: it opens the consent in a popup window, whose last page reports to the page that opened it. */
import { createServer } from 'node:http';
import { listenOnLoopback } from '../listen.ts';
import { OAuthClient } from '../oauth-client.ts';
import type { World } from '../world.ts';
import type { Page } from './chromium.ts';

/** Opens the client in `page`, and the consent in a popup window, which is returned. The page has `reported` when the consent is done. */
export async function connectInPopup(world: World, page: Page): Promise<Page> {
  let html = '';
  const port = await listenOnLoopback(
    createServer((request, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(
        request.url!.startsWith('/callback') ? '<script>opener.reported = location.search; close()</script>' : html,
      );
    }),
  );
  const site = `http://127.0.0.1:${port}`;
  const client = new OAuthClient(world);
  await client.register({ client_name: 'Web page', redirect_uris: [`${site}/callback`] });
  const address = client.address({ redirect_uri: `${site}/callback` }).replaceAll('&', '&amp;');
  html = `<button id="go" onclick="window.popup = open('${address}', '', 'width=500,height=700')">connect</button>`;
  await page.open(site);
  await page.click('#go');
  return await page.popup();
}
