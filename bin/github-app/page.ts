/**
 * A page on this machine that sends a browser to GitHub with the manifest of an App, and receives the code with which GitHub redirects it
 * back ("Registering a GitHub App from a manifest"). Only the browser that opened the page gets anything from it.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CommandFailed } from '../failure.ts';

/** GitHub's code is valid for an hour. */
const TIMEOUT_MS = 3600_000;

export type ManifestPage = {
  /** Address of the page, to open in a browser. */
  url: string;
  /** The code of the App that was created. Rejects with CommandFailed after an hour without one. */
  code: Promise<string>;
  /** Sends the browser to the next page; undefined: shows that the work is complete. */
  finish(next: string | undefined): void;
  close(): void;
};

/** Starts the page. `action`: where the manifest is posted to. `manifest`: everything but `redirect_url`. */
export async function openManifestPage(action: string, manifest: Record<string, unknown>): Promise<ManifestPage> {
  const [start, state] = [randomBytes(24).toString('base64url'), randomBytes(24).toString('base64url')];
  let waiting: ServerResponse | undefined;
  let taken: (code: string) => void = () => {};
  let late: (error: Error) => void = () => {};
  const code = new Promise<string>((resolve, reject) => {
    [taken, late] = [resolve, reject];
  });
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
    if (request.method !== 'GET' || request.headers.host !== host())
      return answer(response, 404, 'There is nothing here.');
    if (pathname === `/${start}`) return answer(response, 200, form());
    if (pathname !== '/created') return answer(response, 404, 'There is nothing here.');
    const [given, found] = [searchParams.get('state') ?? '', searchParams.get('code') ?? ''];
    if (!same(given, state) || !/^[\w-]{1,200}$/.test(found) || waiting !== undefined)
      return answer(response, 400, 'This is not the expected response. Open the link from the terminal again.');
    waiting = response;
    taken(found);
  });
  const host = () => `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const form = () => `<!doctype html><meta charset="utf-8"><title>agent-broker</title>
<p>GitHub will show the App's name and ask to create it.</p>
<form method="post" action="${inAttribute(`${action}?state=${state}`)}">
<input type="hidden" name="manifest" value="${inAttribute(JSON.stringify({ ...manifest, redirect_url: `http://${host()}/created` }))}">
<button autofocus>Create the App at GitHub</button></form>`;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const timer = setTimeout(() => late(new CommandFailed('Nobody made the App within an hour.')), TIMEOUT_MS);
  return {
    url: `http://${host()}/${start}`,
    code,
    finish: (next) => {
      if (waiting === undefined || waiting.writableEnded) return;
      if (next === undefined) answer(waiting, 200, 'That did not work. The terminal shows the reason.');
      else waiting.writeHead(303, { location: next, 'cache-control': 'no-store' }).end();
    },
    close: () => {
      clearTimeout(timer);
      server.close();
      server.closeIdleConnections();
    },
  };
}

function answer(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'content-type': body.startsWith('<') ? 'text/html; charset=utf-8' : 'text/plain; charset=utf-8',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    connection: 'close',
  });
  response.end(body);
}

function same(given: string, wanted: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(wanted)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Escapes a text for an HTML attribute. */
const inAttribute = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
