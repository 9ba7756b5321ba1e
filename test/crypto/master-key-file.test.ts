import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { generateMasterKey } from '../../broker/crypto/master-key.ts';
import {
  dropPreviousKeys,
  keyFolderWarning,
  readMasterKeys,
  rotateKeyFile,
} from '../../broker/crypto/master-key-file.ts';
import { open, rewrap, seal, sealedWith } from '../../broker/crypto/seal.ts';
import { refusal } from './refusal.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'master-key-'));
  file = join(folder, 'keys', 'master.key');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const create = () => readMasterKeys({ file }, { allowCreate: true });
const read = () => readMasterKeys({ file }, { allowCreate: false });

describe('the key file', () => {
  it('is created at the first start, readable by its owner only, and reused afterwards', () => {
    const first = create();
    expect(first.created).toBe(true);
    expect(first.keys.previous).toEqual([]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 'keys')).mode & 0o777).toBe(0o700);
    expect(readFileSync(file, 'utf8')).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
    const second = create();
    expect(second.created).toBe(false);
    expect(second.keys.current.id).toBe(first.keys.current.id);
    expect(read().keys.current.id).toBe(first.keys.current.id);
  });

  it('KEY-04 has a warning in a folder that others may write, or that is a symbolic link', () => {
    create();
    const keys = join(folder, 'keys');
    expect(keyFolderWarning(file)).toBeUndefined();
    for (const mode of [0o777, 0o770, 0o702]) {
      chmodSync(keys, mode);
      expect(keyFolderWarning(file)).toContain(`chmod 700 ${keys}`);
    }
    // With the sticky bit, as on /tmp, users cannot remove each other's files.
    chmodSync(keys, 0o1777);
    expect(keyFolderWarning(file)).toBeUndefined();
    chmodSync(keys, 0o755);
    expect(keyFolderWarning(file)).toBeUndefined();
    symlinkSync(keys, join(folder, 'link'));
    expect(keyFolderWarning(join(folder, 'link', 'master.key'))).toContain('is a symbolic link');
    expect(keyFolderWarning(join(folder, 'none', 'master.key'))).toBeUndefined();
  });

  it("on Windows, which has no modes, has a warning outside of the user's profile", () => {
    const at = (path: string) => keyFolderWarning(path, { platform: 'win32', home: 'C:\\Users\\mara' });
    expect(at('D:\\work\\.agent-broker\\keys\\master.key')).toContain('Set AGENT_BROKER_DATA');
    expect(at('C:\\Users\\maras\\.agent-broker\\keys\\master.key')).toContain('is not in it');
    expect(at('c:\\users\\Mara\\.agent-broker\\keys\\master.key')).toBeUndefined();
  });

  it('ST-08 is never created when that is not allowed', () => {
    const error = refusal(read);
    expect(error.code).toBe('missing');
    expect(error.message).toContain(file);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is the same for processes that start concurrently', async () => {
    const script = join(folder, 'start.ts');
    const module = join(import.meta.dirname, '../../broker/crypto/master-key-file.ts');
    writeFileSync(
      script,
      `import { readMasterKeys } from ${JSON.stringify(module)};
       for (let i = 0; i < 40; i++) {
         const { keys, created } = readMasterKeys({ file: process.argv[2] + i }, { allowCreate: true });
         process.stdout.write(keys.current.id + ' ' + created + '\\n');
       }`,
    );
    const { execFile } = await import('node:child_process');
    const outputs = await Promise.all(
      [1, 2, 3].map(
        () =>
          new Promise<string[]>((resolve, reject) =>
            execFile(process.execPath, [script, file], (error, stdout) =>
              error ? reject(error) : resolve(stdout.trim().split('\n')),
            ),
          ),
      ),
    );
    for (let i = 0; i < 40; i++) {
      const lines = outputs.map((output) => output[i]!.split(' '));
      expect(new Set(lines.map(([id]) => id)).size).toBe(1);
      expect(lines.filter(([, created]) => created === 'true')).toHaveLength(1);
    }
    expect(readdirSync(join(folder, 'keys'))).toHaveLength(40);
  });

  it.each([0o640, 0o604, 0o660, 0o666, 0o610])('is refused when others may access it (mode %o)', (mode) => {
    create();
    chmodSync(file, mode);
    const error = refusal(read);
    expect(error.code).toBe('unsafe_file');
    expect(error.message).toContain('chmod 600');
    chmodSync(file, 0o400);
    expect(read().created).toBe(false);
  });

  // Only root can give another user access to a file.
  it.runIf(process.geteuid?.() === 0)(
    "owned by root may be readable by the service's group, but not writable, executable or readable by others",
    () => {
      create();
      for (const above of [folder, join(folder, 'keys')]) chmodSync(above, 0o755);
      const nobody = 65534;
      chownSync(file, 0, nobody);
      const asNobody = <T>(act: () => T): T => {
        process.setegid!(nobody);
        process.seteuid!(nobody);
        try {
          return act();
        } finally {
          process.seteuid!(0);
          process.setegid!(0);
        }
      };
      chmodSync(file, 0o440);
      expect(asNobody(read).created).toBe(false);
      for (const mode of [0o444, 0o460, 0o450]) {
        chmodSync(file, mode);
        expect(asNobody(() => refusal(read)).code).toBe('unsafe_file');
      }
      // A service's own file, and root's when the broker is root, must not be readable by a group.
      chmodSync(file, 0o440);
      expect(refusal(read).code).toBe('unsafe_file');
      chownSync(file, nobody, nobody);
      expect(asNobody(() => refusal(read)).code).toBe('unsafe_file');
    },
  );

  it('is refused when it is a symbolic link, even to a valid key file', () => {
    create();
    const link = join(folder, 'link');
    symlinkSync(file, link);
    const error = refusal(() => readMasterKeys({ file: link }, { allowCreate: true }));
    expect(error.code).toBe('unsafe_file');
    expect(error.message).toContain('symbolic link');
  });

  it('is refused when it is a folder or a pipe, without waiting for a writer', () => {
    expect(refusal(() => readMasterKeys({ file: folder }, { allowCreate: true })).code).toBe('unsafe_file');
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', ['-m', '600', pipe]);
    expect(refusal(() => readMasterKeys({ file: pipe }, { allowCreate: true })).code).toBe('unsafe_file');
  });

  it.each([
    ['empty', '', 'Line 1'],
    ['a weak key', `${Buffer.alloc(32).toString('base64')}\n`, 'all zeros'],
    ['a blank line at the end', `${generateMasterKey().text.reveal()}\n\n`, 'Line 2'],
    ['too long', 'x'.repeat(5000), 'too large'],
  ])('is refused with the reason: %s', (_name, text, reason) => {
    create();
    writeFileSync(file, text);
    expect(refusal(create).message).toContain(reason);
  });
});

describe('rotating the key in the file', () => {
  const place = { table: 'connections', column: 'secret', rowId: 'row', organisationId: 'org' };

  it('KEY-03 keeps all values readable throughout, and ends when no value needs the old key', () => {
    const before = create().keys;
    const sealed = seal(before, place, 'a credential');
    const during = rotateKeyFile(file);
    expect(during.previous.map((key) => key.id)).toEqual([before.current.id]);
    expect(read().keys).toMatchObject({
      current: { id: during.current.id },
      previous: [{ id: before.current.id }],
    });
    expect(open(read().keys, place, sealed).toString()).toBe('a credential');
    const rewrapped = rewrap(during, place, sealed);
    expect(sealedWith(rewrapped)).toBe(during.current.id);

    const after = dropPreviousKeys(file);
    expect(after).toMatchObject({ current: { id: during.current.id }, previous: [] });
    expect(read().keys).toMatchObject({ current: { id: during.current.id }, previous: [] });
    expect(open(after, place, rewrapped).toString()).toBe('a credential');
    expect(() => open(after, place, sealed)).toThrow(before.current.id);
  });

  it('leaves a file for its owner only, and no other file', () => {
    create();
    rotateKeyFile(file);
    rotateKeyFile(file);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(4);
    expect(readdirSync(join(folder, 'keys'))).toEqual(['master.key']);
  });

  it('is refused while another rotation is running, and loses no key', () => {
    const { keys } = create();
    writeFileSync(`${file}.new`, '');
    const error = refusal(() => rotateKeyFile(file));
    expect(error.code).toBe('busy');
    expect(error.message).toContain(`${file}.new`);
    expect(read().keys.current.id).toBe(keys.current.id);
    rmSync(`${file}.new`);
    expect(rotateKeyFile(file).previous[0]!.id).toBe(keys.current.id);
  });

  it('needs a key file, and does not create one', () => {
    create();
    rmSync(file);
    expect(refusal(() => rotateKeyFile(file)).code).toBe('missing');
    expect(refusal(() => dropPreviousKeys(file)).code).toBe('missing');
    expect(readdirSync(join(folder, 'keys'))).toEqual([]);
  });
});
