/**
 * The pages of docs/clients, line by line as they stand, on a newcomer's machine: from `git clone` to a call on GitHub that was
 * approved on a phone. GitHub is a small server; the phone is Chromium with touch and an authenticator made of software.
 *
 * All of that by the two pages that have other commands than the rest: the front page, which connects Cursor, and that of clients that are not known. The others
 * differ in the name of the client alone. Their `connect` is performed without a terminal and npx, and of the server that the client then starts a call is
 * refused: what is held and approved goes the same way whoever started it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { parse as parseJson } from 'jsonc-parser';
import { parse as parseToml } from 'smol-toml';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { CLIENTS } from '../../bin/clients.ts';
import { ROOT } from '../world/checkout.ts';
import { type Page, startBrowser, withoutChromium } from '../world/chromium.ts';
import { commandHost } from '../world/command.ts';
import { shared } from '../world/given.ts';
import { fencesOf } from '../world/markdown.ts';
import { newcomer, withoutNewcomer } from '../world/newcomer.ts';
import { thorough } from '../world/thorough.ts';
import { startUpstream } from '../world/upstream.ts';

const ADDRESS = 'https://github.com/agent-broker/agent-broker.git';
const CLONE = `git clone ${ADDRESS} && cd agent-broker`;
const START = 'npm ci && npm start';
/**
 * What is typed for it. `npm ci` takes 40 s of a processor and 660 MB. `.ci/run` has just done it, by the same lockfile, when it comes here: an ordinary run links
 * what it made, and a thorough one types the line as it stands.
 */
const STARTED = thorough ? [START] : [`ln -s '${join(ROOT, 'node_modules')}' node_modules`, 'npm start'];
const TOKEN = 'github_pat_of_a_newcomer';
/** The front page, and every client; the first one clones, and the others go on with what it left. */
const PAGES = ['README.md', ...[...CLIENTS, 'others'].map((client) => `docs/clients/${client}.md`)];
/** Whose lines are all typed. */
const TYPED = ['README.md', 'docs/clients/others.md'];
const PHONE = { width: 360, height: 740 };
const skipped = withoutNewcomer ?? withoutChromium;

/** The lines of a page's console blocks, without their prompts. */
const linesOf = (page: string): string[] =>
  fencesOf(readFileSync(join(ROOT, page), 'utf8'))
    .filter(({ info }) => info === 'console')
    .flatMap(({ text }) => text.split('\n').filter((line) => line.startsWith('$ ')))
    .map((line) => line.slice(2));

type Entry = { command: string; args: string[]; env: Record<string, string> };

/** The entry that a client reads, in the file that `connect` says it changed: the first one by which it can be found in there. */
function entryIn(printed: string): Entry {
  const [file] = [...printed.matchAll(/\/\S+\.(?:json|toml|yaml)/g)]
    .map(([path]) => path)
    .filter((path) => !path.includes('/profiles/'));
  // For a client that is not known, what it is to be given is printed.
  const text =
    file === undefined
      ? printed.slice(printed.indexOf('\n{'), printed.lastIndexOf('}') + 1)
      : readFileSync(file, 'utf8');
  const whole: unknown = file?.endsWith('.toml')
    ? parseToml(text)
    : file?.endsWith('.yaml')
      ? parseYaml(text)
      : parseJson(text);
  const find = (value: unknown): Record<string, unknown> | undefined => {
    if (typeof value !== 'object' || value === null) return undefined;
    const one = value as Record<string, unknown>;
    return 'command' in one ? one : Object.values(one).map(find).find(Boolean);
  };
  const { command, args = [], env, environment } = find(whole)!;
  const [program, ...words] = [command, args].flat() as string[];
  return { command: program!, args: words, env: (env ?? environment) as Entry['env'] };
}

/** What is typed where `add github` asks. */
const TOKEN_GIVEN = [
  { shown: /How is github connected/, typed: '\r' },
  // As soon as a token is spoken of: what is pasted before the question has ended is not shown either.
  { shown: /personal access token/, typed: `${TOKEN}\r` },
];

describe.skipIf(skipped)(`docs/clients${skipped ? ` (skipped: ${skipped})` : ''}`, () => {
  const github = shared(async () => {
    const server = await startUpstream();
    server.answer = (request, response) => {
      const isAllowed = request.headers.authorization === `Bearer ${TOKEN}`;
      const body = request.url!.endsWith('/user')
        ? { login: 'ann' }
        : { number: 7, html_url: 'https://github.com/acme/shop/issues/7' };
      const status = isAllowed ? (request.method === 'POST' ? 201 : 200) : 401;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(isAllowed ? body : { message: 'Bad credentials' }));
    };
    return server;
  });
  const machine = shared(async () =>
    newcomer(ADDRESS, { GITHUB_API_URL: github.url, AGENT_BROKER_ALLOW_PRIVATE: github.address }),
  );
  const phone = shared(async () => {
    const page = await (await startBrowser()).page(PHONE);
    await page.resize(PHONE, 'phone');
    await page.authenticator();
    return page;
  });

  const hosted = commandHost();

  /** What typing a line led to: a broker that runs and a platform that is there serve every page. */
  const typed = new Map<string, Entry | undefined>();

  test.each(PAGES)(
    '%s',
    async (page) => {
      const took: string[] = [];
      const beganAt = performance.now();
      const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`;
      let startedAt = beganAt;
      const lap = (what: string) => {
        took.push(`${what} ${seconds(startedAt)}`);
        startedAt = performance.now();
      };
      const [clone, start, ...more] = linesOf(page);
      expect([clone, start]).toEqual([CLONE, START]);
      if (!typed.has(CLONE)) {
        await machine.start([CLONE, ...STARTED], /running at http:\S+[\s\S]*Console/);
        lap('clone and start');
      }
      typed.set(CLONE, undefined);
      // A second terminal is opened in the home folder, and stays in the folder that its first line goes to.
      expect(more[0]).toMatch(/^cd agent-broker && /);
      let entry: Entry | undefined;
      for (const [at, line] of more.entries()) {
        const command = at === 0 ? line.replace('cd agent-broker && ', '') : line;
        if (!typed.has(command)) {
          typed.set(
            command,
            TYPED.includes(page) ? await perform(line, at === 0 ? '.' : 'agent-broker') : await connectClient(command),
          );
          lap(/agent-broker (\w+)/.exec(command)![1]!);
        }
        entry ??= typed.get(command);
      }
      await callsOf(entry!, TYPED.includes(page));
      lap('calls');
      // Told, and not asserted: a machine that is shared takes several times as long. Above the limit of the test it fails.
      console.log(`${page}: ${took.join(', ')}; in all ${seconds(beganAt)}`);
    },
    300_000,
  );

  test('curl.md begins as the others do', () => {
    expect(linesOf('docs/clients/curl.md')).toEqual([CLONE, START]);
  });

  test('the address of a phone, as each page gives it, is where the code leads', async () => {
    const given = PAGES.map((page) => {
      const [, text = ''] = /^```sh\n(tailscale serve[^`]*)```$/m.exec(readFileSync(join(ROOT, page), 'utf8')) ?? [];
      return text.split('\n').filter((line) => line.startsWith('export '));
    });
    const [[line] = []] = given;
    expect(given).toEqual(given.map(() => [line]));
    // Another broker than the one that runs by now. The tunnel itself takes an account.
    const other = 'export AGENT_BROKER_DATA=$HOME/for-a-phone';
    await machine.start([other, line!, 'cd agent-broker', 'npm start'], /running at https:\S+[\s\S]*Console/);
    const printed = await machine.type([other, 'npx agent-broker owner link --qr'], 'agent-broker');
    expect(printed).toMatch(/^https:\/\/machine\.tailnet\.ts\.net\/console\/sign-in#sgn_\S+$/m);
    expect(printed).toContain('█');
    expect(printed).not.toContain('A phone cannot');
  });

  async function perform(line: string, folder: string): Promise<Entry | undefined> {
    const answers = line.endsWith('demo')
      ? [{ shown: /press Enter/, typed: '\r' }]
      : line.endsWith('add github')
        ? TOKEN_GIVEN
        : [];
    const printed = await machine.type([line], folder, answers);
    if (/ (connect|agent create) /.test(line)) return entryIn(printed);
    if (line.includes('owner link')) await enrol(phone, /http:\S+#sgn_\S+/.exec(printed)![0]);
    else expect(printed).toContain(line.endsWith('demo') ? 'Of the refund, signed by key' : 'The credential is ann');
    expect(printed).not.toContain(TOKEN);
    // What it tells to do next can be typed as it stands; the page has its own.
    const next = /^Next: (.+)$/m.exec(printed)?.[1];
    expect(next !== undefined).toBe(line.includes(' add '));
    if (next) expect(await machine.type([`${next} --dry-run`], 'agent-broker')).toContain('Nothing was done.');
    return undefined;
  }

  /** `npx agent-broker connect CLIENT …`, in the folder of the checkout. */
  async function connectClient(command: string): Promise<Entry> {
    const [npx, program, ...words] = command.match(/'[^']*'|\S+/g)!.map((word) => word.replaceAll(`'`, ''));
    expect([npx, program, words[0]]).toEqual(['npx', 'agent-broker', 'connect']);
    const { code, stdout, stderr } = await hosted(words, {
      cwd: join(machine.home, 'agent-broker'),
      env: { HOME: machine.home },
    });
    expect(code, stderr).toBe(0);
    return entryIn(stdout);
  }

  async function enrol(page: Page, signIn: string): Promise<void> {
    await page.open(signIn);
    await page.until(`location.pathname === '/console'`);
    await page.open(new URL('/console/passkeys', signIn).href);
    await page.click('.enrol button');
    await page.until(`document.querySelector('#passkeys .rename') !== null`);
    await page.value(`fetch('/owner/sign-out', {
      method: 'POST', headers: { 'X-Svc-Csrf': '1', 'Content-Type': 'application/json' }, body: '{}',
    }).then(({ status }) => status)`);
    // The console leads to sign-in once it notices; what is opened next has to be the last that is.
    await page.open('about:blank');
    await page.until(`location.href === 'about:blank'`);
  }

  /** As the client starts the server: asks for an issue in a repository that is not allowed, and, to be approved, in one that is. */
  async function callsOf(entry: Entry, isApproved: boolean): Promise<void> {
    const client = new Client({ name: 'walk', version: '1' });
    const env = Object.fromEntries(
      Object.entries(entry.env).map(([name, value]) => [
        name,
        value.replace(/\$?\{(userHome|env:HOME|HOME)\}/, machine.home),
      ]),
    );
    await client.connect(
      new StdioClientTransport({ command: entry.command, args: entry.args, env: { HOME: machine.home, ...env } }),
    );
    onTestFinished(() => client.close());
    const issue = (repository: string) => ({
      name: 'write_platform',
      arguments: {
        platform: 'codehost',
        scope: 'codehost:issues.write',
        method: 'POST',
        endpoint: `/repos/${repository}/issues`,
        data: { title: 'The cart loses its items' },
        reason: 'You asked me to report it.',
      },
    });
    const refused = await client.callTool(issue('evil/shop'));
    expect(JSON.stringify(refused)).toContain('repo_not_allowed');
    if (!isApproved) return;
    let address: string | undefined;
    const made = client.callTool(issue('acme/shop'), {
      onprogress: ({ message }) => {
        address ??= /http:\/\/\S+\/approve\/[0-9a-f-]{36}/.exec(message ?? '')?.[0];
      },
    });
    made.catch(() => {});
    await expect.poll(() => address, { timeout: 30_000 }).toBeDefined();
    await phone.open(address!);
    await phone.click('.passkey');
    expect(JSON.stringify(await made)).toContain('https://github.com/acme/shop/issues/7');
    const posts = github.seen.splice(0).filter(({ method }) => method === 'POST');
    expect(posts).toMatchObject([{ target: '/api/v3/repos/acme/shop/issues' }]);
  }
});
