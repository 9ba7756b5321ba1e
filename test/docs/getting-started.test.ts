/** The commands of the docs run, and print what the docs show. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../world/checkout.ts';
import { missingTools, perform, SHOWN_AT, startAsShown, still, stillJson, toolNote } from '../world/docs-commands.ts';
import { fencesOf } from '../world/markdown.ts';
import { newFolder } from '../world/stores.ts';

const run = promisify(execFile);
const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

describe.skipIf(missingTools.length > 0)(`the commands of getting-started.md${toolNote}`, () => {
  const PAGE = 'docs/getting-started.md';
  const folder = newFolder();

  const fences = fencesOf(read(PAGE));
  const governance = fences.find(({ info }) => info === 'yaml')!.text;
  const worlds = {
    'sh run': { folder, baseUrl: '', data: join(folder, 'sandbox'), state: join(folder, 'sandbox.env') },
    'sh run acme': { folder, baseUrl: '', data: join(folder, 'acme', 'data'), state: join(folder, 'acme.env') },
  };
  const steps = fences.flatMap((fence, i) => {
    const world = worlds[fence.info as keyof typeof worlds];
    const next = fences[i + 1];
    return world ? [{ ...fence, world, answer: next && ['json', 'text'].includes(next.info) ? next : undefined }] : [];
  });

  beforeAll(async () => {
    mkdirSync(join(folder, 'acme'));
    writeFileSync(join(folder, 'acme', 'governance.yaml'), governance);
    worlds['sh run'].baseUrl = await startAsShown(folder, worlds['sh run'].data);
    worlds['sh run acme'].baseUrl = await startAsShown(folder, './acme/data', ['--no-sandbox']);
  });

  test('has blocks to run, for both brokers', () => {
    expect(steps.filter(({ info }) => info === 'sh run').length).toBeGreaterThan(4);
    expect(steps.filter(({ info }) => info === 'sh run acme').length).toBeGreaterThan(3);
    expect(steps.filter(({ answer }) => answer).length).toBeGreaterThan(6);
  });

  // The order matters: later blocks use the results of earlier ones.
  test.each(steps)('the block at line $line prints what the page shows', async (step) => {
    const printed = await perform(step.text, step.world);
    const { answer } = step;
    if (answer?.info === 'json') expect(stillJson(printed)).toEqual(stillJson(answer.text));
    if (answer?.info === 'text') expect(still(printed)).toContain(still(answer.text));
    // The page asks the reader to copy the ids, so the test does it here.
    const [, agentId, ownerId] = /(agt_\w+)\s+([0-9a-f-]{36})\s+active$/m.exec(printed) ?? [];
    if (agentId)
      writeFileSync(
        step.world.state,
        `${readFileSync(step.world.state, 'utf8')}export AGENT_BROKER_AGENT_ID=${agentId} AGENT_BROKER_OWNER_ID=${ownerId} AGENT_BROKER_PRIVATE_KEY=acme/keys/triage.key\n`,
      );
  });

  // These programs use the broker and the files of the blocks above.
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
  test('the docs contain three programs', () => expect(snippets).toHaveLength(3));
});
