/** The typed client's own package: its tarball, installed alone in an empty folder, against a running broker. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const run = promisify(execFile);
const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;
const TSC = join(ROOT, 'node_modules', '.bin', 'tsc');
const STRICT = ['--strict', '--module', 'nodenext', '--target', 'es2024', '--lib', 'es2024,dom', '--types', ''];
const read = (...path: string[]) => JSON.parse(readFileSync(join(...path), 'utf8'));

describe('agent-broker-client', () => {
  const folder = newFolder();
  const installed = join(folder, 'node_modules', 'agent-broker-client');

  beforeAll(async () => {
    const npm = (cwd: string, ...args: string[]) => run('npm', args, { cwd, env: { ...process.env, PATH } });
    await npm(join(ROOT, 'mcp', 'client'), 'pack', '--pack-destination', folder);
    const [tarball = ''] = readdirSync(folder);
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    // The package has no dependencies, so the registry is not contacted.
    await npm(folder, 'install', '--offline', '--no-audit', '--no-fund', join(folder, tarball));
  }, 180_000);

  test('the package can be installed alone, and contains its code, types, readme and license', () => {
    const all = readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'));
    expect(all).toEqual(['agent-broker-client']);
    const files = readdirSync(installed, { recursive: true }).map(String);
    for (const file of ['README.md', 'LICENSE', join('dist', 'connect-agent.js'), join('dist', 'connect-agent.d.ts')])
      expect(files).toContain(file);
    expect(files.filter((file) => /(?<!\.d)\.ts$|\.map$/.test(file))).toEqual([]);
    const code = files
      .filter((file) => file.endsWith('.js'))
      .map((file) => readFileSync(join(installed, file), 'utf8'));
    const foreign = code.flatMap((text) => [...text.matchAll(/from '((?!\.|node:)[^']+)'/g)].map(([, name]) => name));
    expect(foreign).toEqual([]);
  });

  test('the package has the version of the broker’s package', () => {
    expect(read(installed, 'package.json').version).toBe(read(ROOT, 'package.json').version);
  });

  test('the package calls a running broker, and its types describe the outcome', async () => {
    const world = await startWorld();
    const organisation = await world.organisation();
    await organisation.platform();
    const { agentId, ownerId, keys, baseUrl } = await organisation.agent();
    const privateKey = keys.privateKey.export({ format: 'pem', type: 'pkcs8' });
    writeFileSync(
      join(folder, 'use.mts'),
      `import { type CallOutcome, connectAgent } from 'agent-broker-client';
       declare const process: { argv: string[] };
       const broker = connectAgent(JSON.parse(process.argv[2]!));
       const read = { platform: 'demo', endpoint: '/items/1', method: 'GET', scope: 'demo:read' } as const;
       const outcome: CallOutcome = await broker.call(read);
       // @ts-expect-error There is no such method.
       const wrong = () => broker.call({ ...read, method: 'FETCH' });
       const refused = await broker.call({ ...read, scope: 'demo:none' });
       if (outcome.kind !== 'answered' || refused.kind !== 'denied') throw new Error(outcome.kind + refused.kind);
       console.log(outcome.upstreamStatus, refused.reason, typeof wrong);`,
    );
    await run(TSC, [...STRICT, 'use.mts'], { cwd: folder });
    const connection = JSON.stringify({ url: baseUrl, agentId, ownerId, privateKey });
    const { stdout } = await run(process.execPath, ['use.mjs', connection], { cwd: folder });
    expect(stdout).toBe('200 scope_not_granted function\n');
  });

  test('a library around the client can name all of its types, and pass on options that may be undefined', async () => {
    writeFileSync(
      join(folder, 'library.mts'),
      `import { type AgentClient, type Answer, connectAgent, type Identity } from 'agent-broker-client';
       const action = { platform: 'demo', endpoint: '/items/1', method: 'GET', scope: 'demo:read' } as const;
       export type Options = { key: string | undefined; signal: AbortSignal | undefined; seconds: number | undefined };
       export const connect = (bearer: string, session: string | undefined) =>
         connectAgent({ url: 'http://localhost', bearer, session });
       export const me = (client: AgentClient): Promise<Answer<Identity>> => client.me();
       export const call = (client: AgentClient, { key, signal }: Options) =>
         client.call(action, { idempotencyKey: key, signal });
       export const wait = async (client: AgentClient, { seconds, signal }: Options) => {
         const now = await client.approval('id', { waitSeconds: seconds, signal });
         return now.ok ? now.value.corrected : await client.settled('id', { timeoutSeconds: seconds, signal });
       };
       interface Refund { payment: string; amount: number }
       export const refund = (client: AgentClient, data: Refund, reason: string | undefined) =>
         client.call({ ...action, method: 'POST', data, reason });
       export const rest = async (client: AgentClient) => [
         await client.accessRequest('token'),
         await client.consent('token'),
         await client.report({ message: 'odd' }),
       ];`,
    );
    const library = ['--declaration', '--exactOptionalPropertyTypes', 'library.mts'];
    await run(TSC, [...STRICT, ...library], { cwd: folder }).catch(({ stdout }) => expect.fail(stdout));
  });
});
