/** The recipe of docs/unmodified.md that lets a command reach the network only through the sidecar. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, startWorld } from '../world/world.ts';
import { profileOf, run } from './run-world.ts';
import { onlyWith } from './tls-world.ts';

const [, SCRIPT = ''] =
  /^```sh fenced\.sh\n(.*?)^```/ms.exec(readFileSync(join(ROOT, 'docs/unmodified.md'), 'utf8')) ?? [];
const folder = newFolder();
const script = join(folder, 'fenced.sh');
writeFileSync(script, SCRIPT);

const works = (command: string, ...words: string[]) => spawnSync(command, words, { stdio: 'ignore' }).status === 0;
const tools = [onlyWith('socat', '-V'), onlyWith('bwrap', '--version')];
/** Containers may not be permitted to create namespaces. */
const mayFence = works('bwrap', '--unshare-net', '--unshare-pid', '--ro-bind', '/', '/', 'true');
const canFence = tools.every((one) => one === test) && mayFence;

test('the recipe of the page is a script', () => {
  expect(SCRIPT).toContain('bwrap --unshare-net');
  expect(works('sh', '-n', script)).toBe(true);
});

test.skipIf(!canFence)(
  `behind the fence, a command reaches its platforms, and nothing else${canFence ? '' : ' (skipped: no namespaces here)'}`,
  async () => {
    const world = await startWorld();
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent({ rules: ALLOW_ALL });
    const profile = profileOf(agent);
    const home = newFolder();
    writeFileSync(join(home, '.netrc'), 'machine x login y password z');
    mkdirSync(join(home, 'work'));
    const look = `
      curl -sS -H "Authorization: Bearer $AGENT_BROKER_RUN_KEY" "$AGENT_BROKER_RUN_URL/proxy/demo-main/items" && echo reached
      curl -sS -m 3 "${world.running.baseUrl}/health" 2>/dev/null || echo no broker
      curl -sS -m 3 "${world.upstream.url}/v1/items" 2>/dev/null || echo no platform
      cat ${home}/.netrc 2>/dev/null || echo no home
      touch made && exit 7`;
    const words = ['--strict', '--', 'sh', '-c', `cd ${home}/work && HOME=${home} exec sh ${script} sh -c "$0"`, look];
    const ended = await run(profile, words);
    expect(ended.code, ended.stderr).toBe(7);
    expect(ended.stdout).toMatch(/reached\nno broker\nno platform\nno home\n$/);
    expect(world.upstream.seen.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${CANARY}`]);
    expect(works('test', '-f', join(home, 'work/made'))).toBe(true);
  },
);
