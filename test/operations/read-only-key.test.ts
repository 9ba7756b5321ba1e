/** A key file that the broker can read but not replace, such as systemd credentials and mounted secrets: the master key is rotated manually. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { generateMasterKey } from '../../broker/crypto/master-key.ts';
import { runCommand } from '../world/command.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newFolder } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const folder = newFolder();
const mount = (...words: string[]) => execFileSync('mount', [...words, folder], { stdio: 'ignore' });
const canMount = (() => {
  try {
    mount('-t', 'tmpfs', '-o', 'size=1m,mode=0700', 'tmpfs');
  } catch {
    return false;
  }
  afterFile(() => execFileSync('umount', ['--lazy', folder]));
  return true;
})();
const why = canMount ? '' : ' (skipped: no file system can be mounted here)';

test.runIf(canMount)(`the master key is rotated manually${why}`, async () => {
  const file = join(folder, 'master.key');
  const write = (...lines: string[]) => {
    mount('-o', 'remount,rw');
    writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
    mount('-o', 'remount,ro');
  };
  const [first, second] = [generateMasterKey(), generateMasterKey()].map(({ text }) => text.reveal()) as [
    string,
    string,
  ];
  write(first);
  const world = await startWorld('sqlite', { AGENT_BROKER_KEY_FILE: file });
  const agent = await (await world.demoOrganisation()).agent();
  const call = { platform: 'demo', endpoint: '/items/1', method: 'GET', scope: 'demo:read' };
  const rotate = () => runCommand(['keys', 'rotate', 'master'], { cwd: newFolder(), env: world.environment });

  const refused = await rotate();
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('Set the first line of the key file to a new key and the second to the present one');
  expect(refused.stderr).not.toContain('writable');

  write(second, first);
  await world.restart();
  const rotated = await rotate();
  expect(rotated, rotated.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('were re-wrapped') });
  expect(readFileSync(file, 'utf8')).toBe(`${second}\n${first}\n`);

  write(second);
  await world.restart();
  expect((await agent.act(call)).status).toBe(200);
});
