/** The document with third-party tools: a linter has no complaints, and a generated client works. */
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { send } from '../world/agent.ts';
import { ROOT } from '../world/checkout.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { newFolder } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';
import { servedDocument } from './document.ts';

// Other processes do the work, and wait for a processor when many tests run concurrently.
vi.setConfig({ testTimeout: scaledTimeout(90_000), hookTimeout: scaledTimeout(90_000) });

const run = promisify(execFile);
const REDOCLY = createRequire(import.meta.url).resolve('@redocly/cli/bin/cli.js');
/** Runs in a workspace of its own, with the TypeScript 5 that it needs; ours is 7. */
const OPENAPI_TYPESCRIPT = join(
  import.meta.dirname,
  'generated',
  'node_modules',
  'openapi-typescript',
  'bin',
  'cli.js',
);

const OFFLINE = ['--import', pathToFileURL(join(import.meta.dirname, 'offline.ts')).href];

/** Runs Redocly's tool with telemetry and update checks off, and without network access. */
const redocly = (folder: string, ...words: string[]) =>
  run(process.execPath, [...OFFLINE, REDOCLY, ...words], {
    cwd: folder,
    env: { PATH: process.env.PATH, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  });

const folder = newFolder();
const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
const agent = shared(() => organisation.agent());
const document = shared(() => servedDocument(world.running.baseUrl));
beforeAll(() => {
  // The linter refuses localhost in the example of a server.
  const elsewhere = { ...document, servers: [{ url: 'https://broker.acme.test' }] };
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(elsewhere));
  cpSync(join(ROOT, 'test', 'contract', 'redocly.yaml'), join(folder, 'redocly.yaml'));
});

test('control: an attempt to connect would be detected', async () => {
  const failed = await run(process.execPath, [...OFFLINE, '-e', `fetch('${world.running.baseUrl}/health')`]).catch(
    (error) => error,
  );
  expect(failed.code).toBe(99);
});

/** A problem that the linter reports: its rule, and the document that has it. */
type Problem = { ruleId: string; location: { source: { ref: string } }[] };

// One run for all documents: the tool takes longer to start than to read them.
describe('the linter', () => {
  let found: Problem[];
  const rulesOf = (file: string) =>
    found.filter(({ location }) => location[0]?.source.ref === file).map(({ ruleId }) => ruleId);
  beforeAll(async () => {
    const { body } = await send(`${world.running.baseUrl}/owner/openapi.json`, {});
    const owners = { ...body, servers: [{ url: 'https://broker.acme.test' }] };
    writeFileSync(join(folder, 'owner.json'), JSON.stringify(owners));
    const broken = JSON.parse(JSON.stringify(document));
    broken.paths['/health'].get.operationId = broken.paths['/version'].get.operationId;
    delete broken.paths['/health'].get.summary;
    writeFileSync(join(folder, 'broken.json'), JSON.stringify(broken));
    const files = ['openapi.json', 'owner.json', 'broken.json'];
    const run = await redocly(folder, 'lint', ...files, '--format=json', '--max-problems=500').catch((error) => error);
    expect(run.code, run.stderr).toBe(1);
    // One JSON text for each document, without anything between them.
    const answers: { problems: Problem[] }[] = JSON.parse(`[${run.stdout.replaceAll(/^\}\{$/gm, '},{')}]`);
    expect(answers).toHaveLength(files.length);
    found = answers.flatMap(({ problems }) => problems);
    expect(found.length).toBeLessThan(500);
  });

  test('has no complaints about the document, not even a warning', () => {
    expect(rulesOf('openapi.json')).toEqual([]);
  });

  test('only complains about the owners’ document that its tags are not described', () => {
    expect([...new Set(rulesOf('owner.json'))]).toEqual(['tag-description']);
  });

  test('control: the linter reports errors', () => {
    expect(rulesOf('broken.json')).toContain('operation-operationId-unique');
    expect(rulesOf('broken.json')).toContain('operation-summary');
  });
});

/** Code that uses only the generated types. Lines that must not compile are marked. */
const USES = `
import createClient from 'openapi-fetch';
import type { paths } from './broker.d.ts';

export const clientOf = (baseUrl: string, token: string) =>
  createClient<paths>({ baseUrl, headers: { authorization: 'Bearer ' + token } });

export async function use(client: ReturnType<typeof clientOf>): Promise<string> {
  const call = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' } as const;
  const made = await client.POST('/v1/actions', { body: call, headers: { 'Idempotency-Key': 'k' } });
  if (made.error) return 'reason' in made.error ? String(made.error.reason) : made.error.error;
  // 200 and 202: the status tells which.
  if ('approval_id' in made.data) {
    const held = await client.GET('/v1/approvals/{id}', { params: { path: { id: String(made.data.approval_id) } } });
    const status: 'pending' | 'approved' | 'denied' | 'expired' | undefined = held.data?.status;
    return String(status);
  }
  const upstream: number = made.data._meta.upstream_status;
  const me = await client.GET('/v1/agents/me');
  const halted: boolean = me.data?.halt?.recoverable_by === 'time';
  return upstream + String(halted);
}

/** Never called. */
export async function misuse(client: ReturnType<typeof clientOf>): Promise<void> {
  const call = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' } as const;
  // @ts-expect-error method is one of five
  await client.POST('/v1/actions', { body: { ...call, method: 'FETCH' } });
  // @ts-expect-error the scope is missing
  await client.POST('/v1/actions', { body: { platform: 'demo', endpoint: '/items', method: 'GET' } });
  // @ts-expect-error there is no such path
  await client.GET('/v1/billing');
  // @ts-expect-error it is not read so
  await client.GET('/v1/actions');
}
`;

describe('a generated client', () => {
  beforeAll(async () => {
    await run(process.execPath, [...OFFLINE, OPENAPI_TYPESCRIPT, 'openapi.json', '-o', 'broker.d.ts'], { cwd: folder });
    writeFileSync(join(folder, 'uses.ts'), USES);
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'dir');
    const compilerOptions = {
      strict: true,
      noEmit: true,
      target: 'es2024',
      lib: ['es2024', 'dom', 'dom.iterable'],
      module: 'nodenext',
      types: [],
      allowImportingTsExtensions: true,
      erasableSyntaxOnly: true,
      exactOptionalPropertyTypes: true,
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['uses.ts'] }));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  });

  test('type-checks, and has the types of each path’s requests and answers', async () => {
    const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
    const { stdout } = await run(tsc, ['-p', folder], { shell: process.platform === 'win32' }).catch((error) => error);
    expect(stdout).toBe('');
  });

  test('covers every path of the document, and can call the broker', async () => {
    const types = readFileSync(join(folder, 'broker.d.ts'), 'utf8');
    expect(Object.keys(document.paths).filter((path) => !types.includes(`"${path}": {`))).toEqual([]);
    const { clientOf, use } = await import(pathToFileURL(join(folder, 'uses.ts')).href);
    const client = clientOf(world.running.baseUrl, await agent.token());
    expect(await use(client)).toBe('200false');
    const call = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: {} };
    const held = await client.POST('/v1/actions', { body: call });
    expect([held.response.status, held.data.status]).toEqual([202, 'pending_approval']);
    const path = { id: held.data.approval_id };
    expect((await client.GET('/v1/approvals/{id}', { params: { path } })).data.status).toBe('pending');
    const refused = await client.POST('/v1/actions', { body: { ...call, scope: 'demo:none' } });
    expect(refused.error).toMatchObject({ error: 'Permission denied', reason: 'scope_not_granted' });
  });
});
