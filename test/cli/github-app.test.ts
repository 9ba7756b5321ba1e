/** `agent-broker github-app`, against a loopback server that behaves as GitHub, with this test as the browser. */
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { jwtVerify } from 'jose';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { type GitHubAppOptions, gitHubApp } from '../../bin/github-app/github-app.ts';
import { describeGitHubApp } from '../../bin/github-app/result.ts';
import { parseGovernance } from '../../broker/config-file/parse.ts';
import { openPage, withoutChromium } from '../world/browser/chromium.ts';
import { commandHost } from '../world/command.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { newFolder } from '../world/stores.ts';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const PEM = privateKey.export({ format: 'pem', type: 'pkcs1' }) as string;
const APP = 815;

const site = {
  url: '',
  /** The manifests posted so far, with their path and state. */
  posted: [] as { path: string; manifest: Record<string, unknown>; state: string }[],
  installed: [] as { id: number; account: { login: string }; suspended_at: string | null }[],
  fails: false,
  /** Statuses of the next answers to requests for the installations, before they succeed. */
  statuses: [] as number[],
};

beforeAll(async () => {
  const server = createServer(async (request, response) => {
    const received = await text(request);
    const { pathname, searchParams } = new URL(request.url!, 'http://x');
    const json = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (pathname.endsWith('/settings/apps/new') && request.method === 'POST') {
      const form = new URLSearchParams(received);
      const manifest = JSON.parse(form.get('manifest')!);
      const state = searchParams.get('state')!;
      site.posted.push({ path: pathname, manifest, state });
      response.writeHead(302, { location: `${manifest.redirect_url}?code=a180b1a3d263c81b&state=${state}` }).end();
      return;
    }
    if (pathname === '/api/v3/app-manifests/a180b1a3d263c81b/conversions' && request.method === 'POST') {
      if (site.fails) return void json(404, {});
      const app = {
        id: APP,
        slug: 'acme-agents',
        name: 'Acme agents',
        html_url: `${site.url}/github-apps/acme-agents`,
      };
      return void json(201, { ...app, pem: PEM, client_secret: 'CANARY-secret', webhook_secret: 'CANARY-hook' });
    }
    try {
      const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')![1]!;
      await jwtVerify(bearer, publicKey, { algorithms: ['RS256'], issuer: String(APP) });
    } catch {
      return void json(401, {});
    }
    if (pathname === '/api/v3/app')
      json(200, { slug: 'acme-agents', name: 'Acme agents', html_url: `${site.url}/github-apps/acme-agents` });
    else if (pathname === '/api/v3/app/installations') {
      const status = site.statuses.shift();
      json(status ?? 200, status === undefined ? site.installed : {});
    } else json(404, {});
  });
  const port = await listenOnLoopback(server);
  site.url = `http://127.0.0.1:${port}`;
});

let folder: string;
let keyFile: string;
beforeEach(() => {
  folder = newFolder();
  keyFile = join(folder, 'secrets', 'app.pem');
  site.posted = [];
  site.installed = [{ id: 42, account: { login: 'acme' }, suspended_at: null }];
  site.fails = false;
  site.statuses = [];
});

/** Starts the command; returns the link that a person would open. */
async function begin(more: Partial<GitHubAppOptions> = {}) {
  const said: string[] = [];
  let opened: (url: string) => void = () => {};
  const link = new Promise<string>((resolve) => {
    opened = resolve;
  });
  const result = gitHubApp({ host: site.url, keyFile, wait: true, ...more }, (text) => {
    said.push(text);
    const [, url] = /^ {2}(http:\/\/127\.0\.0\.1:\d+\/\S+)$/m.exec(text) ?? [];
    if (url && !url.startsWith(site.url)) opened(url);
  });
  result.catch(() => {});
  return {
    link: await Promise.race([
      link,
      result.then(
        () => '',
        () => '',
      ),
    ]),
    result,
    said,
  };
}

/** Presses the button of the page and follows the browser to GitHub. Returns the redirect from there. */
async function press(link: string): Promise<{ status: number; location: string | null; text: string }> {
  const page = await fetch(link);
  const html = await page.text();
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  const plain = (text: string) => text.replaceAll('&quot;', '"').replaceAll('&amp;', '&');
  const [, action = ''] = /action="([^"]+)"/.exec(html)!;
  const [, manifest = ''] = /name="manifest" value="([^"]+)"/.exec(html)!;
  const created = await fetch(plain(action), {
    method: 'POST',
    body: new URLSearchParams({ manifest: plain(manifest) }),
    redirect: 'manual',
  });
  const back = await fetch(created.headers.get('location')!, { redirect: 'manual' });
  return { status: back.status, location: back.headers.get('location'), text: await back.text() };
}

describe('creating an App in a browser', () => {
  test('writes the key to a file that only the person can read, waits for the installation, and prints the governance file', async () => {
    const { link, result, said } = await begin({ org: 'acme', name: 'Acme agents' });
    const sent = await press(link);
    expect([sent.status, sent.location]).toEqual([303, `${site.url}/github-apps/acme-agents/installations/new`]);
    const made = await result;
    const [{ path, manifest, state } = { path: '', manifest: {}, state: '' }] = site.posted;
    expect(path).toBe('/organizations/acme/settings/apps/new');
    expect(state.length).toBeGreaterThan(20);
    expect(manifest).toMatchObject({ name: 'Acme agents', public: false, default_events: [] });
    expect(manifest.default_permissions).toEqual({
      actions: 'read',
      checks: 'read',
      contents: 'write',
      issues: 'write',
      metadata: 'read',
      pull_requests: 'write',
      statuses: 'read',
    });
    expect(readFileSync(keyFile, 'utf8')).toBe(PEM);
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);
    expect(made).toMatchObject({ app_id: '815', installations: [{ installation_id: '42', account: 'acme' }] });
    expect(parse(made.governance)).toEqual({
      platforms: {
        codehost: {
          use: 'github',
          base_url: `${site.url}/api/v3`,
          git_base_url: site.url,
          auth: { type: 'app', app_id: '815', private_key: { file: keyFile }, installation_id: '42' },
        },
      },
      connections: { 'acme-github': { platform: 'codehost' } },
    });
    expect(parseGovernance(made.governance, 'governance.yaml')).toMatchObject({ ok: true });
    const shown = [...said, describeGitHubApp(made), JSON.stringify(made), sent.text].join('\n');
    expect(shown).not.toMatch(/CANARY|BEGIN RSA/);
    for (const line of PEM.split('\n').slice(1, -2)) expect(shown).not.toContain(line);
    // The local server is closed.
    await expect(fetch(link)).rejects.toThrow();
  });

  test.skipIf(withoutChromium)('the page works in a real browser', async () => {
    const { link, result } = await begin({ wait: false });
    const page = await openPage({ width: 800, height: 600 });
    await page.open(link);
    await page.until(`document.querySelector('button') !== null`);
    await page.value(`document.querySelector('button').click()`);
    await page.until(`location.pathname === '/github-apps/acme-agents/installations/new'`);
    expect((await result).app_id).toBe('815');
  });

  test('a request without the secret path or state gets nothing, and cannot bring a code', async () => {
    const { link, result } = await begin({ wait: false });
    const { origin, port } = new URL(link);
    expect((await fetch(origin)).status).toBe(404);
    expect((await fetch(link, { method: 'POST' })).status).toBe(404);
    for (const query of ['code=x', 'code=x&state=', `code=x&state=${'a'.repeat(32)}`])
      expect((await fetch(`${origin}/created?${query}`)).status).toBe(400);
    // With another Host header, as after DNS rebinding by a page of another site.
    const rebound = await new Promise<number>((resolve) => {
      void import('node:http').then(({ get }) =>
        get(
          { host: '127.0.0.1', port, path: new URL(link).pathname, headers: { host: `evil.example:${port}` } },
          (answer) => resolve(answer.statusCode ?? 0),
        ),
      );
    });
    expect(rebound).toBe(404);
    expect((await press(link)).status).toBe(303);
    expect((await result).installations).toEqual([]);
  });

  test('when GitHub does not return the App, no file stays', async () => {
    site.fails = true;
    const { link, result } = await begin();
    expect(await press(link)).toMatchObject({ status: 200, text: 'That did not work. The terminal shows the reason.' });
    await expect(result).rejects.toThrow('127.0.0.1');
    expect(existsSync(keyFile)).toBe(false);
  });

  test('a failed request for the installation is retried, and reported', async () => {
    site.statuses = [401, 502];
    const { link, result, said } = await begin();
    await press(link);
    expect((await result).installations).toMatchObject([{ installation_id: '42' }]);
    expect(said.join('\n')).toMatch(/refused the signature.* Asking again …\n.* answered 502\. Asking again …$/s);
  });

  test('Ctrl-C while waiting for the installation prints what to write so far', async () => {
    site.installed = [];
    const { link, result, said } = await begin();
    await press(link);
    await vi.waitFor(() => expect(said.join('\n')).toContain('Ctrl-C ends the waiting'), 5_000);
    process.emit('SIGINT');
    const made = await result;
    expect(made).toMatchObject({ app_id: '815', installations: [] });
    expect(describeGitHubApp(made)).toContain('It is installed nowhere yet.');
    expect(said.join('\n')).toContain('was created with the id 815');
    expect(process.listenerCount('SIGINT')).toBe(0);
  });

  test('when the key cannot be written, the error names the App and what to do', async () => {
    const { link, result } = await begin();
    rmSync(join(folder, 'secrets'), { recursive: true });
    expect(await press(link)).toMatchObject({ status: 200, text: 'That did not work. The terminal shows the reason.' });
    await expect(result).rejects.toThrow(/created with the id 815, .*ENOENT.*--app-id 815 --key-file FILE/);
  });

  test('an existing file is kept, and unknown scopes are refused, before an App is created', async () => {
    keyFile = join(folder, 'app.pem');
    writeFileSync(keyFile, 'mine');
    await expect((await begin()).result).rejects.toThrow('which is kept');
    expect(readFileSync(keyFile, 'utf8')).toBe('mine');
    await expect((await begin({ scopes: 'contents.all' })).result).rejects.toThrow('There is no scope contents.all');
    await expect((await begin({ org: '../x' })).result).rejects.toThrow('is not the name of an organisation');
    await expect((await begin({ host: 'http://github.acme.example' })).result).rejects.toThrow('is not the address');
    expect(site.posted).toEqual([]);
  });

  test('--scopes limits the App’s permissions to these scopes, with workflows only when named', async () => {
    const { link, result } = await begin({ scopes: 'codehost:contents.read,workflows.write,hooks.read', wait: false });
    await press(link);
    await result;
    expect(site.posted[0]?.manifest.default_permissions).toEqual({
      contents: 'write',
      repository_hooks: 'read',
      workflows: 'write',
    });
  });
});

describe('an existing App', () => {
  const hosted = commandHost();
  const run = (...words: string[]) => hosted(['github-app', '--host', site.url, ...words], { cwd: folder });

  test('is printed with its installations, each of which becomes a connection', async () => {
    writeFileSync(join(folder, 'app.pem'), PEM, { mode: 0o600 });
    site.installed.push({ id: 7, account: { login: 'acme-labs' }, suspended_at: '2026-01-01T00:00:00Z' });
    // An account name may begin with a digit; the name of a variable may not.
    site.installed.push({ id: 8, account: { login: '3scale' }, suspended_at: null });
    const shown = await run('--app-id', '815', '--key-file', 'app.pem');
    expect(shown.code, shown.stderr).toBe(0);
    expect(shown.stdout).toContain('7  acme-labs (suspended');
    expect(shown.stdout).toContain('file: app.pem');
    expect(shown.stdout).toMatch(/INSTALLATION_ACME_LABS/);
    expect(shown.stdout).not.toContain('BEGIN');
    const { stdout } = await run('--app-id', '815', '--key-file', 'app.pem', '--json');
    expect(JSON.parse(stdout).installations).toHaveLength(3);
    expect(parseGovernance(JSON.parse(stdout).governance, 'governance.yaml')).toMatchObject({ ok: true });
  });

  test('with another App’s key, without a key, or with a file that is no key, is refused with a reason', async () => {
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
      format: 'pem',
      type: 'pkcs1',
    });
    writeFileSync(join(folder, 'other.pem'), other);
    writeFileSync(join(folder, 'none.pem'), 'nothing');
    for (const [words, code, says] of [
      [['--key-file', 'other.pem'], 1, 'refused the signature'],
      [['--key-file', 'none.pem'], 1, 'is no private key in PEM form'],
      [['--key-file', 'missing.pem'], 1, 'cannot be read'],
      [[], 2, 'Name the file of its private key'],
    ] as const) {
      const refused = await run('--app-id', '815', ...words);
      expect([refused.code, refused.stdout]).toEqual([code, '']);
      expect(refused.stderr).toContain(says);
    }
  });
});
