/**
 * The pages of docs/clients, line by line as written, on the machine of a new user: from `git clone` to a call on GitHub that was
 * approved on a phone. GitHub is a small local server; the phone is Chromium with touch and a virtual authenticator.
 *
 * Only two pages, whose commands differ from the rest, are typed completely: the front page, which connects Cursor, and the page of other clients. The others
 * differ in the name of the client only. Their `connect` runs without a terminal and npx, and the MCP server that the client then starts makes one call that is
 * refused: holding and approving a call does not depend on the client. Of the lines of the two pages, an ordinary run types those that ask something, in a
 * terminal with npx, and a thorough run all.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { parse as parseJson } from 'jsonc-parser';
import { parse as parseToml } from 'smol-toml';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { CLIENTS } from '../../bin/clients/clients.ts';
import { type Page, startBrowser, withoutChromium } from '../world/browser/chromium.ts';
import { signOut } from '../world/browser/held-page.ts';
import { ROOT } from '../world/checkout.ts';
import { commandHost } from '../world/command.ts';
import { fencesOf } from '../world/markdown.ts';
import { newcomer, withoutNewcomer } from '../world/new-user.ts';
import { thorough } from '../world/runner/thorough.ts';
import { startUpstream } from '../world/servers/upstream.ts';
import { shared } from '../world/world.ts';

const ADDRESS = 'https://github.com/agent-broker/agent-broker.git';
const CLONE = `git clone ${ADDRESS} && cd agent-broker`;
const START = 'npm ci && npm start';
/**
 * The lines typed in place of START. `npm ci` takes 40 s of CPU time and 660 MB, and `.ci/run` has just done it with the same lockfile: an ordinary run links
 * that node_modules, and a thorough run types the line as written.
 */
const STARTED = thorough ? [START] : [`ln -s '${join(ROOT, 'node_modules')}' node_modules`, 'npm start'];
const TOKEN = 'github_pat_of_a_newcomer';
/** The front page and the page of each client. The first one clones the repository, and the others use that checkout. */
const PAGES = ['README.md', ...[...CLIENTS, 'others'].map((client) => `docs/clients/${client}.md`)];
/** The pages whose lines are all run. */
const TYPED = ['README.md', 'docs/clients/others.md'];
const PHONE = { width: 360, height: 740 };
const skipped = withoutNewcomer ?? withoutChromium;

/** Returns the command lines of a page's console blocks, without their prompts. */
const linesOf = (page: string): string[] =>
  fencesOf(readFileSync(join(ROOT, page), 'utf8'))
    .filter(({ info }) => info === 'console')
    .flatMap(({ text }) => text.split('\n').filter((line) => line.startsWith('$ ')))
    .map((line) => line.slice(2));

type Entry = { command: string; args: string[]; env: Record<string, string> };

/** Returns the first MCP server entry in the file that `connect` reports as changed. */
function entryIn(printed: string): Entry {
  const [file] = [...printed.matchAll(/\/\S+\.(?:json|toml|yaml)/g)]
    .map(([path]) => path)
    .filter((path) => !path.includes('/profiles/'));
  // For an unknown client, `connect` prints the entry instead of writing a file.
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

/** The answers to the questions of `add github`. */
const TOKEN_GIVEN = [
  { shown: /How is github connected/, typed: '\r' },
  // Typed as soon as the question mentions a token: text pasted before the prompt is complete is not echoed either.
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

  /** The result of each line that was typed. A line runs once: all pages share the broker and the platform. */
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
      // The second terminal starts in the home folder, and stays in the folder that its first line changes to.
      expect(more[0]).toMatch(/^cd agent-broker && /);
      let entry: Entry | undefined;
      for (const [at, line] of more.entries()) {
        const command = at === 0 ? line.replace('cd agent-broker && ', '') : line;
        if (!typed.has(command)) {
          typed.set(
            command,
            TYPED.includes(page)
              ? await perform(line, command, at === 0 ? '.' : 'agent-broker')
              : await connectClient(command),
          );
          lap(/agent-broker (\w+)/.exec(command)![1]!);
        }
        entry ??= typed.get(command);
      }
      await callsOf(entry!, TYPED.includes(page));
      lap('calls');
      // Logged, not asserted: a shared machine takes several times as long. The timeout of the test is the only limit.
      console.log(`${page}: ${took.join(', ')}; in all ${seconds(beganAt)}`);
    },
    300_000,
  );

  test('curl.md starts with the same commands as the others', () => {
    expect(linesOf('docs/clients/curl.md')).toEqual([CLONE, START]);
  });

  test('the sign-in code leads to the address for phones that each page gives', async () => {
    const given = PAGES.map((page) => {
      const [, text = ''] = /^```sh\n(tailscale serve[^`]*)```$/m.exec(readFileSync(join(ROOT, page), 'utf8')) ?? [];
      return text.split('\n').filter((line) => line.startsWith('export '));
    });
    const [[line] = []] = given;
    expect(given).toEqual(given.map(() => [line]));
    // A second broker, next to the running one. The tunnel itself is not started, since it needs an account.
    const other = 'export AGENT_BROKER_DATA=$HOME/for-a-phone';
    await machine.start([other, line!, 'cd agent-broker', 'npm start'], /running at https:\S+[\s\S]*Console/);
    const home = { AGENT_BROKER_DATA: join(machine.home, 'for-a-phone') };
    const printed = await runHosted('npx agent-broker owner link --qr', home);
    expect(printed).toMatch(/^https:\/\/machine\.tailnet\.ts\.net\/console\/sign-in#sgn_\S+$/m);
    expect(printed).toContain('█');
    expect(printed).not.toContain('A phone cannot');
  });

  async function perform(line: string, command: string, folder: string): Promise<Entry | undefined> {
    const answers = line.endsWith('demo')
      ? [{ shown: /press Enter/, typed: '\r' }]
      : line.endsWith('add github')
        ? TOKEN_GIVEN
        : [];
    const isTyped = thorough || answers.length > 0;
    const printed = isTyped ? await machine.type([line], folder, answers) : await runHosted(command);
    if (/ (connect|agent create) /.test(line)) return entryIn(printed);
    if (line.includes('owner link')) await enrol(phone, /http:\S+#sgn_\S+/.exec(printed)![0]);
    else expect(printed).toContain(line.endsWith('demo') ? 'Of the refund, signed by key' : 'The credential is ann');
    expect(printed).not.toContain(TOKEN);
    // The suggested next command runs as printed; the page continues with its own.
    const next = /^Next: (.+)$/m.exec(printed)?.[1];
    expect(next !== undefined).toBe(line.includes(' add '));
    if (next) expect(await runHosted(`${next} --dry-run`)).toContain('Nothing was done.');
    return undefined;
  }

  /** Runs `npx agent-broker connect CLIENT …` in the folder of the checkout. Returns the entry that it wrote. */
  async function connectClient(command: string): Promise<Entry> {
    expect(command).toMatch(/^npx agent-broker connect /);
    return entryIn(await runHosted(command));
  }

  /** Runs `npx agent-broker …` in the folder of the checkout, without npx, which alone takes two seconds of processor time. Returns its output. */
  async function runHosted(command: string, env: Record<string, string> = {}): Promise<string> {
    const [npx, program, ...words] = command.match(/'[^']*'|\S+/g)!.map((word) => word.replaceAll(`'`, ''));
    expect([npx, program]).toEqual(['npx', 'agent-broker']);
    const { code, stdout, stderr } = await hosted(words, {
      cwd: join(machine.home, 'agent-broker'),
      env: { HOME: machine.home, ...env },
    });
    expect(code, stderr).toBe(0);
    return stdout;
  }

  async function enrol(page: Page, signIn: string): Promise<void> {
    await page.open(signIn);
    await page.until(`location.pathname === '/console'`);
    await page.open(new URL('/console/passkeys', signIn).href);
    await page.click('.enrol button');
    await page.until(`document.querySelector('#passkeys .rename') !== null`);
    await signOut(page);
  }

  /** Starts the MCP server as the client does: a call on a forbidden repository is refused; with `isApproved`, a call on an allowed one is approved. */
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
