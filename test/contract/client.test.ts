/** What others make of the document with tools of their own: a linter has nothing to say, and a generated client works. */
import { execFile } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { send, type TestAgent } from '../world/agent.ts';
import { newFolder } from '../world/stores.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';
import { type Json, operationOf, operationsOf, servedDocument } from './document.ts';

// Other processes do the work, which have to wait for a processor where many tests run at once.
vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '..', '..');
const REDOCLY = createRequire(import.meta.url).resolve('@redocly/cli/bin/cli.js');

const OFFLINE = ['--import', pathToFileURL(join(import.meta.dirname, 'offline.ts')).href];

/** Redocly's tool, as it is in the package: with its telemetry and its look for news off, and with no way out. */
const redocly = (folder: string, ...words: string[]) =>
  run(process.execPath, [...OFFLINE, REDOCLY, ...words], {
    cwd: folder,
    env: { PATH: process.env.PATH, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  });

let world: World;
let organisation: Organisation;
let agent: TestAgent;
let document: Json;
const folder = newFolder();
beforeAll(async () => {
  world = await startWorld('sqlite');
  organisation = await world.organisation();
  await organisation.platform();
  agent = await organisation.agent();
  document = await servedDocument(world.running.baseUrl);
  // The example that the linter wants is no localhost.
  const elsewhere = { ...document, servers: [{ url: 'https://broker.acme.test' }] };
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(elsewhere));
  cpSync(join(ROOT, 'test', 'contract', 'redocly.yaml'), join(folder, 'redocly.yaml'));
});

test('whoever tried to connect would be seen', async () => {
  const failed = await run(process.execPath, [...OFFLINE, '-e', `fetch('${world.running.baseUrl}/health')`]).catch(
    (error) => error,
  );
  expect(failed.code).toBe(99);
});

describe('the linter', () => {
  test('has nothing to say about the document, not even a warning', async () => {
    const { stdout } = await redocly(folder, 'lint', 'openapi.json', '--format=json', '--max-problems=50');
    expect(JSON.parse(stdout).problems).toEqual([]);
  });

  test('has nothing to say about the owners’ document, but that its tags are not described', async () => {
    const { body } = await send(`${world.running.baseUrl}/owner/openapi.json`, {});
    writeFileSync(
      join(folder, 'owner.json'),
      JSON.stringify({ ...body, servers: [{ url: 'https://broker.acme.test' }] }),
    );
    const { stdout } = await redocly(folder, 'lint', 'owner.json', '--format=json', '--skip-rule=tag-description');
    expect(JSON.parse(stdout).problems).toEqual([]);
  });

  test('would say it', async () => {
    const broken = structuredClone(document);
    broken.paths['/health'].get.operationId = broken.paths['/version'].get.operationId;
    delete broken.paths['/health'].get.summary;
    writeFileSync(join(folder, 'broken.json'), JSON.stringify(broken));
    const failed = await redocly(folder, 'lint', 'broken.json', '--format=json').catch((error) => error);
    expect(failed.code).toBe(1);
    const rules = JSON.parse(failed.stdout).problems.map(({ ruleId }: { ruleId: string }) => ruleId);
    expect(rules).toContain('operation-operationId-unique');
    expect(rules).toContain('operation-summary');
  });
});

/** Code of somebody who has nothing but the generated client. What must not compile says so. */
const USES = `
import { createClient, OPERATIONS, type PendingApproval, type PlatformAnswer, type OperationId, type OperationPath, type OperationTag, type Ops } from './client.ts';

const client = createClient<Ops, OperationId, OperationPath, OperationTag>(OPERATIONS, {
  serverUrl: 'https://broker.acme.test',
  auth: { bearer: async () => 'a token' },
});

export async function use(): Promise<string | undefined> {
  const call = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' } as const;
  const made = await client.actionsExecute({ body: call, headers: { 'Idempotency-Key': 'k' } });
  if (made.error) return 'halt' in made.error ? made.error.halt?.instructions : undefined;
  const answer = made.data as PlatformAnswer | PendingApproval;
  if ('approval_id' in answer) {
    const { data } = await client.approvalsRead({ path: { id: String(answer.approval_id) } });
    const status: 'pending' | 'approved' | 'denied' | 'expired' | undefined = data?.status;
    return status;
  }
  const upstream: number = answer._meta.upstream_status;
  // @ts-expect-error method is one of five
  await client.actionsExecute({ body: { ...call, method: 'FETCH' } });
  // @ts-expect-error the scope is missing
  await client.actionsExecute({ body: { platform: 'demo', endpoint: '/items', method: 'GET' } });
  // @ts-expect-error there is no such operation
  await client.billing();
  const me = await client.agentsMe();
  const halted: boolean = me.data?.halt?.recoverable_by === 'time';
  return String(upstream) + halted;
}
`;

describe('a generated client', () => {
  beforeAll(async () => {
    const options = ['--import-ext', 'ts', '--error-mode', 'result', '--args-style', 'grouped'];
    await redocly(folder, 'generate-client', 'openapi.json', '-o', 'client.ts', ...options);
    writeFileSync(join(folder, 'uses.ts'), USES);
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

  test('type-checks, and knows of each operation what it takes and answers', async () => {
    const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
    const { stdout } = await run(tsc, ['-p', folder], { shell: process.platform === 'win32' }).catch((error) => error);
    expect(stdout).toBe('');
  });

  test('has a function for every operation, and speaks with the broker', async () => {
    const generated = await import(pathToFileURL(join(folder, 'client.ts')).href);
    const operations = operationsOf(document).map((name) => operationOf(document, name).operationId);
    expect(operations.filter((name) => typeof generated.client[name] !== 'function')).toEqual([]);
    const client = generated.createClient(generated.OPERATIONS, {
      serverUrl: world.running.baseUrl,
      errorMode: 'result',
      auth: { bearer: () => agent.token() },
    });
    expect((await client.health()).data).toEqual({ status: 'ok' });
    expect((await client.agentsMe()).data).toMatchObject({ agent_id: agent.agentId, agent_status: 'active' });
    const call = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };
    expect((await client.actionsExecute({ body: call })).data._meta).toMatchObject({ upstream_status: 200 });
    const held = await client.actionsExecute({ body: { ...call, method: 'POST', scope: 'demo:write', data: {} } });
    expect(held.data.status).toBe('pending_approval');
    const waiting = await client.approvalsRead({ path: { id: held.data.approval_id } });
    expect(waiting.data.status).toBe('pending');
    const refused = await client.actionsExecute({ body: { ...call, scope: 'demo:none' } });
    expect(refused.error).toMatchObject({ error: 'Permission denied', reason: 'scope_not_granted' });
  });
});
