/** The commands of the docs run, and answer what the docs show. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fencesOf } from './world/markdown.ts';
import { newFolder } from './world/stores.ts';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '..');
const BIN = join(ROOT, 'bin', 'agent-broker.js');
const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

/** What the commands of the page need beside the broker. Where it is not there, this part is skipped and says so. */
const missing = ['bash', 'curl', 'openssl'].filter((tool) => {
  try {
    execFileSync(tool, ['--version'], { stdio: 'ignore' });
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
});
if (missing.length > 0 && process.env.CI) throw new Error(`CI must run the docs: ${missing.join(', ')} missing.`);
const toolNote = missing.length > 0 ? ` (skipped: ${missing.join(', ')} not installed)` : '';

describe.skipIf(missing.length > 0)(`the commands of getting-started.md${toolNote}`, () => {
  const PAGE = 'docs/getting-started.md';
  const SHOWN_AT = 'http://localhost:8787';
  const folder = newFolder();
  const brokers: ChildProcess[] = [];
  afterAll(() => Promise.all(brokers.map((broker) => ended(broker))));

  async function ended(broker: ChildProcess): Promise<void> {
    if (broker.exitCode !== null) return;
    const exit = new Promise((done) => broker.once('exit', done));
    broker.kill('SIGTERM');
    await exit;
  }

  /** A broker as the page starts it, on a free port. Answers its address. */
  function start(data: string, ...words: string[]): Promise<string> {
    const env = { PATH: process.env.PATH, PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: data };
    const broker = spawn(process.execPath, [BIN, 'serve', ...words], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    brokers.push(broker);
    return new Promise((found, reject) => {
      let output = '';
      for (const stream of [broker.stdout, broker.stderr])
        stream.on('data', (chunk: Buffer) => {
          output += chunk;
          const address = /running at (http:\S+)/.exec(output)?.[1];
          if (address) found(address);
        });
      broker.once('exit', (code) => reject(new Error(`the broker ended with ${code}: ${output}`)));
    });
  }

  /** One block, by itself but for what earlier ones of its world exported. Answers what it printed. */
  async function perform(block: string, at: { baseUrl: string; data: string; state: string }): Promise<string> {
    const script = [
      'set -euo pipefail',
      `npx() { shift; "${process.execPath}" "${BIN}" "$@"; }`,
      `if [ -f "${at.state}" ]; then . "${at.state}"; fi`,
      block.replaceAll(SHOWN_AT, at.baseUrl).replaceAll('/tmp/', `${folder}/`),
      `declare -px > "${at.state}"`,
    ].join('\n');
    const env = { PATH: process.env.PATH, HOME: folder, AGENT_BROKER_DATA: at.data };
    const { stdout } = await run('bash', ['-c', script], { cwd: folder, env });
    return stdout.replaceAll(at.baseUrl, SHOWN_AT);
  }

  /** What differs from one run to the next, made the same. */
  const still = (text: string): string =>
    text
      .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<uuid>')
      .replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<moment>')
      .replaceAll(/\bagt_[a-z0-9]{20,21}\b/g, '<agent>')
      .replaceAll(/(?<![\w-])[\w-]{43}(?![\w-])/g, '<thumbprint>')
      .replaceAll(/\bscopes: \d+$/gm, 'scopes: <number>');

  const fences = fencesOf(read(PAGE));
  const governance = fences.find(({ info }) => info === 'yaml')!.text;
  const worlds = {
    'sh run': { baseUrl: '', data: join(folder, 'sandbox'), state: join(folder, 'sandbox.env') },
    'sh run acme': { baseUrl: '', data: join(folder, 'acme', 'data'), state: join(folder, 'acme.env') },
  };
  const steps = fences.flatMap((fence, i) => {
    const world = worlds[fence.info as keyof typeof worlds];
    const next = fences[i + 1];
    return world ? [{ ...fence, world, answer: next && ['json', 'text'].includes(next.info) ? next : undefined }] : [];
  });

  beforeAll(async () => {
    mkdirSync(join(folder, 'acme'));
    writeFileSync(join(folder, 'acme', 'governance.yaml'), governance);
    worlds['sh run'].baseUrl = await start(worlds['sh run'].data);
    worlds['sh run acme'].baseUrl = await start('./acme/data', '--no-sandbox');
  });

  test('has blocks to run, in both worlds', () => {
    expect(steps.filter(({ info }) => info === 'sh run').length).toBeGreaterThan(4);
    expect(steps.filter(({ info }) => info === 'sh run acme').length).toBeGreaterThan(3);
    expect(steps.filter(({ answer }) => answer).length).toBeGreaterThan(6);
  });

  // In order: a later block uses what an earlier one made.
  test.each(steps)('the block at line $line answers what is shown', async (step) => {
    const printed = await perform(step.text, step.world);
    const { answer } = step;
    if (answer?.info === 'json') expect(JSON.parse(still(printed))).toEqual(JSON.parse(still(answer.text)));
    if (answer?.info === 'text') expect(still(printed)).toContain(still(answer.text));
    // The page tells the reader to copy the ids; that is a person's work, so it is done here.
    const [, agentId, ownerId] = /(agt_\w+)\s+([0-9a-f-]{36})\s+active$/m.exec(printed) ?? [];
    if (agentId)
      writeFileSync(
        step.world.state,
        `${readFileSync(step.world.state, 'utf8')}export AGENT_BROKER_AGENT_ID=${agentId} AGENT_BROKER_OWNER_ID=${ownerId} AGENT_BROKER_PRIVATE_KEY=acme/keys/triage.key\n`,
      );
  });

  // Beside the blocks above, on the broker and the files that they left.
  const snippets = ['docs/agents.md', 'docs/receipts.md'].flatMap((page) =>
    fencesOf(read(page))
      .filter(({ info }) => info === 'js')
      .map(({ text, line }) => ({ place: `${page}:${line}`, text })),
  );
  test.each(snippets)('the program at $place runs', async ({ text }) => {
    const { baseUrl, data } = worlds['sh run'];
    const profile = JSON.parse(readFileSync(join(data, 'profiles', 'default.json'), 'utf8'));
    const { local_token } = JSON.parse(readFileSync(join(data, 'run', 'broker.json'), 'utf8'));
    const ask = async (method: string, path: string, token: string, body?: string) => {
      const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) };
      return await (await fetch(baseUrl + path, { method, headers, ...(body && { body }) })).text();
    };
    const session = JSON.parse(await ask('POST', '/owner/token', local_token, '{}')).token;
    writeFileSync(join(folder, 'audit.json'), await ask('GET', '/owner/audit?limit=3', session));
    writeFileSync(join(folder, 'triage.key'), profile.private_key);
    if (!existsSync(join(folder, 'node_modules')))
      symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'snippet.mjs'), text.replaceAll(SHOWN_AT, baseUrl));
    const env = { PATH: process.env.PATH, AGENT_ID: profile.agent_id, OWNER_ID: profile.owner_id };
    const { stdout } = await run(process.execPath, ['snippet.mjs'], { cwd: folder, env });
    if (text.includes('/v1/actions')) expect(stdout).toContain('status: 200');
    else if (text.includes('jose')) expect(stdout).toMatch(/^denied endpoint_scope_mismatch PATCH \/issues\/1 agt_/);
    else
      expect(stdout.trim().split('\n')).toEqual(Array.from({ length: 3 }, () => expect.stringMatching(/ unchanged$/)));
  });
  test('there are three such programs', () => expect(snippets).toHaveLength(3));
});
