/** Replacing a client's file: nobody else can read its content meanwhile, and no temporary file stays behind. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { readClientFile, writeClientFile } from '../../bin/clients/client-file.ts';
import { connectClient } from '../../bin/clients/connect-client.ts';
import { replaceFile } from '../../bin/replace-file.ts';
import { makeKeyPair } from '../world/agent.ts';
import { newFolder } from '../world/stores.ts';

const modeOf = (path: string) => statSync(path).mode & 0o777;

/** Sets the umask, so that the file mode depends on the program only, not on the machine. */
function withUmask(mask: number): void {
  const before = process.umask(mask);
  onTestFinished(() => void process.umask(before));
}

test('an existing file keeps its mode, and a new file is readable only by its user', () => {
  withUmask(0o022);
  const folder = newFolder();
  const old = join(folder, 'old.json');
  writeFileSync(old, 'a', { mode: 0o640 });
  replaceFile(old, 'b');
  replaceFile(join(folder, 'new', 'new.json'), 'c');
  expect([readFileSync(old, 'utf8'), modeOf(old)]).toEqual(['b', 0o640]);
  expect(modeOf(join(folder, 'new', 'new.json'))).toBe(0o600);
  expect(readdirSync(folder).sort()).toEqual(['new', 'old.json']);
});

test('a temporary file that cannot replace the target is removed', () => {
  const folder = newFolder();
  const path = join(folder, 'mcp.json');
  mkdirSync(join(path, 'full'), { recursive: true });
  expect(() => replaceFile(path, 'API_KEY')).toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  expect(readdirSync(folder)).toEqual(['mcp.json']);
});

test('symlinks are followed to their end, whether the target exists or not; a loop is an error', () => {
  const folder = newFolder();
  mkdirSync(join(folder, 'kept'));
  symlinkSync('kept', join(folder, 'by'));
  symlinkSync(join('by', 'b.json'), join(folder, 'a.json'));
  symlinkSync('../kept/c.json', join(folder, 'kept', 'b.json'));
  for (const text of ['1', '2']) {
    replaceFile(join(folder, 'a.json'), text);
    expect(readFileSync(join(folder, 'kept', 'c.json'), 'utf8')).toBe(text);
    for (const link of ['a.json', 'kept/b.json']) expect(lstatSync(join(folder, link)).isSymbolicLink()).toBe(true);
  }
  symlinkSync('circle.json', join(folder, 'circle.json'));
  expect(() => replaceFile(join(folder, 'circle.json'), 'x')).toThrow(expect.objectContaining({ code: 'ELOOP' }));
});

test('a symlink planted at the path of the temporary file is not followed', async () => {
  const folder = newFolder();
  vi.stubEnv('CLAUDE_CONFIG_DIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  const [config, prey, profile] = ['.claude.json', 'prey', 'profile.json'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(config, '{"API_KEY":"CANARY"}', { mode: 0o600 });
  writeFileSync(prey, 'mine');
  symlinkSync(prey, `${config}.${process.pid}.part`);
  const private_key = makeKeyPair().privateKey.export({ format: 'pem', type: 'pkcs8' });
  const content = { url: 'http://127.0.0.1:1', agent_id: 'a', owner_id: 'o', private_key };
  writeFileSync(profile, JSON.stringify(content), { mode: 0o600 });
  await connectClient('claude-code', { profile });
  expect(JSON.parse(readFileSync(config, 'utf8'))).toMatchObject({ API_KEY: 'CANARY', mcpServers: {} });
  expect([readFileSync(prey, 'utf8'), modeOf(config), lstatSync(config).isFile()]).toEqual(['mine', 0o600, true]);
});

test('anything but a regular UTF-8 file of up to 64 MiB is refused, and a concurrent change is not overwritten', () => {
  const folder = newFolder();
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  expect(() => readClientFile(pipe)).toThrow('is no file');
  expect(() => readClientFile(folder)).toThrow('is no file');
  const path = join(folder, 'mcp.json');
  writeFileSync(path, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]));
  expect(() => readClientFile(path)).toThrow('is not UTF-8');
  truncateSync(path, 65 * 1024 * 1024);
  expect(() => readClientFile(path)).toThrow('more than 64 MiB');
  writeFileSync(path, '\uFEFF{}');
  expect(readClientFile(path)).toBe('\uFEFF{}');
  const edited = { text: '{"a":1}', change: 'added', before: undefined } as const;
  expect(() => writeClientFile(path, edited, '{}')).toThrow('changed concurrently');
  expect(readFileSync(path, 'utf8')).toBe('\uFEFF{}');
  writeClientFile(path, edited, '\uFEFF{}');
  expect(readFileSync(path, 'utf8')).toBe('{"a":1}');
});

test.skipIf(process.getuid?.() !== 0)(
  'a file of another user keeps its owner, and a folder without write permission is reported',
  () => {
    const folder = newFolder();
    const path = join(folder, 'mcp.json');
    writeFileSync(path, '{}', { mode: 0o644 });
    chownSync(path, 65534, 65534);
    replaceFile(path, '{"a":1}');
    expect([statSync(path).uid, statSync(path).gid, modeOf(path)]).toEqual([65534, 65534, 0o644]);
    // As user nobody, in a folder of root.
    chmodSync(folder, 0o755);
    const script = `import('${new URL('../../bin/clients/client-file.ts', import.meta.url).pathname}').then(({ writeClientFile }) => {
    process.setuid(65534);
    try { writeClientFile('${path}', { text: '{}', change: 'added' }, '{"a":1}'); } catch (error) { console.log(error.message); }
  })`;
    const { stdout } = spawnSync(process.execPath, ['--no-warnings', '-e', script], { encoding: 'utf8' });
    expect(stdout).toBe(`${path} cannot be written (EACCES).\n`);
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['{"a":1}', ['mcp.json']]);
  },
);

test.skipIf(process.getuid?.() !== 0)('a file keeps its group, or the new group gets no rights', () => {
  const folder = newFolder();
  const path = join(folder, 'mcp.json');
  writeFileSync(path, '{}');
  chownSync(path, 0, 4242);
  chmodSync(path, 0o660);
  replaceFile(path, '{"a":1}');
  expect([statSync(path).gid, modeOf(path)]).toEqual([4242, 0o660]);
  // As the file's owner, who is not in the group.
  for (const one of [folder, path]) chownSync(one, 65534, 4242);
  const script = `import('${new URL('../../bin/replace-file.ts', import.meta.url).pathname}').then(({ replaceFile }) => {
    process.setgroups([]); process.setgid(65534); process.setuid(65534);
    replaceFile('${path}', '{"a":2}');
  })`;
  const { stderr } = spawnSync(process.execPath, ['--no-warnings', '-e', script], { encoding: 'utf8' });
  expect([stderr, readFileSync(path, 'utf8')]).toEqual(['', '{"a":2}']);
  expect([statSync(path).gid, modeOf(path)]).toEqual([65534, 0o600]);
});
