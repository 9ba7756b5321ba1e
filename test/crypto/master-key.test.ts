import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { checkValue, generateMasterKey, type MasterKey, parseMasterKey } from '../../broker/crypto/master-key.ts';
import { readMasterKeys } from '../../broker/crypto/master-key-file.ts';
import { refusal } from './refusal.ts';

const base64 = (bytes: Uint8Array | string) => Buffer.from(bytes).toString('base64');

describe('a master key', () => {
  it('is parsed from 32 bytes in base64, and has the same id and check value each time', () => {
    const { text, key } = generateMasterKey();
    const read = parseMasterKey(text.reveal(), 'AGENT_BROKER_MASTER_KEY');
    expect(read.id).toBe(key.id);
    expect(read.id).toMatch(/^[0-9a-f]{16}$/);
    expect(checkValue(read)).toBe(checkValue(key));
  });

  it('ST-08 has a check value that differs between keys', () => {
    const [one, other] = [generateMasterKey().key, generateMasterKey().key];
    expect(checkValue(one)).toMatch(/^[0-9a-f]{64}$/);
    expect(checkValue(one)).not.toBe(checkValue(other));
    expect(one.id).not.toBe(other.id);
  });

  it('does not reveal itself when it is printed', () => {
    const bytes = randomBytes(32);
    const key: MasterKey = parseMasterKey(base64(bytes), 'x');
    const printed = inspect(key, { depth: 9, showHidden: true }) + JSON.stringify(key);
    expect(printed).not.toContain(base64(bytes).slice(0, 12));
    expect(printed).not.toContain(bytes.toString('hex').slice(0, 12));
  });

  const malformed: Record<string, string> = {
    'the empty string': '',
    '31 bytes': base64(randomBytes(31)),
    '33 bytes': base64(randomBytes(33)),
    base64url: base64(Buffer.alloc(32, 0xfb)).replaceAll('+', '-').replaceAll('/', '_'),
    'no padding': base64(randomBytes(32)).slice(0, 43),
    'a newline at the end': `${base64(randomBytes(32))}\n`,
    'base64 with non-zero unused bits': `${base64(Buffer.alloc(32, 1)).slice(0, 42)}F=`,
    hexadecimal: randomBytes(32).toString('hex'),
  };
  for (const [name, text] of Object.entries(malformed)) {
    it(`refuses ${name}`, () => {
      const error = refusal(() => parseMasterKey(text, 'AGENT_BROKER_MASTER_KEY'));
      expect(error.code).toBe('malformed');
      expect(error.message).toContain('AGENT_BROKER_MASTER_KEY is not a master key');
      expect(error.message).toContain('openssl rand -base64 32');
      if (text !== '') expect(error.message).not.toContain(text.slice(0, 12));
    });
  }
});

describe('KEY-06 a key that is obviously not random is refused with the reason', () => {
  const weak: Record<string, [Uint8Array | string, string]> = {
    'all zeros': [Buffer.alloc(32), 'all zeros'],
    'one byte repeated': [Buffer.alloc(32, 0xa5), 'plain sequence'],
    'counting up': [Uint8Array.from({ length: 32 }, (_, at) => at + 0xf0), 'plain sequence'],
    'counting down in steps': [Uint8Array.from({ length: 32 }, (_, at) => 255 - 3 * at), 'plain sequence'],
    'a pass phrase': ['correct horse battery staple 123', 'text'],
    'hexadecimal digits taken as bytes': [randomBytes(16).toString('hex'), 'text'],
    'sixteen bytes repeated': [Buffer.concat(Array(2).fill(randomBytes(16))), 'repeats'],
    'few different bytes': [Uint8Array.from({ length: 32 }, (_, at) => (at * at * 17) % 11), 'too few'],
    'the AES-256 key of NIST SP 800-38A': [
      Buffer.from('603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4', 'hex'),
      'published sample',
    ],
  };
  for (const [name, [bytes, reason]] of Object.entries(weak)) {
    it(name, () => {
      const error = refusal(() => readMasterKeys({ environment: base64(bytes) }, { allowCreate: true }));
      expect(error.code).toBe('weak');
      expect(error.message).toContain(reason);
      expect(error.message).not.toContain(base64(bytes).slice(0, 12));
    });
  }

  it('ten thousand random keys are not refused', () => {
    for (let i = 0; i < 10_000; i++) parseMasterKey(base64(randomBytes(32)), 'x');
  });

  it('every master key in a file of this repository is refused', () => {
    const found: string[] = [];
    for (const file of textFiles(join(import.meta.dirname, '../..'))) {
      for (const [key] of readFileSync(file, 'utf8').matchAll(/(?<![\w+/=-])[A-Za-z0-9+/]{43}=(?![\w+/=-])/g)) {
        try {
          parseMasterKey(key, file);
          found.push(`${file}: ${key}`);
        } catch {
          // Refused, as expected.
        }
      }
    }
    expect(found).toEqual([]);
  });
});

describe('keys from the environment', () => {
  const [current, former, older] = [generateMasterKey(), generateMasterKey(), generateMasterKey()];

  it('are the current one and, during a rotation, former ones', () => {
    const { keys, created } = readMasterKeys(
      { environment: current.text.reveal(), previous: `${former.text.reveal()},${older.text.reveal()}` },
      { allowCreate: false },
    );
    expect(keys.current.id).toBe(current.key.id);
    expect(keys.previous.map((key) => key.id)).toEqual([former.key.id, older.key.id]);
    expect(created).toBe(false);
  });

  it('need no former key', () => {
    const source = { environment: current.text.reveal(), previous: '' };
    expect(readMasterKeys(source, { allowCreate: false }).keys.previous).toEqual([]);
  });

  it('name the invalid variable in the error', () => {
    const source = { environment: current.text.reveal(), previous: `${former.text.reveal()},nonsense` };
    expect(refusal(() => readMasterKeys(source, { allowCreate: false })).message).toContain(
      'Key 2 of AGENT_BROKER_MASTER_KEY_PREVIOUS is not a master key',
    );
    expect(refusal(() => readMasterKeys({ environment: '' }, { allowCreate: true })).message).toContain(
      'AGENT_BROKER_MASTER_KEY is not a master key',
    );
  });
});

/** Files that people read and copy from; the lock file contains hashes of packages only. */
function* textFiles(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (['node_modules', 'dist', '.git', '.agent-broker', 'package-lock.json'].includes(entry.name)) continue;
    if (entry.isDirectory()) yield* textFiles(path);
    else if (entry.isFile() && /\.(ts|js|mjs|md|ya?ml|json|env|example|sh|txt|toml|html)$|^[^.]+$/.test(entry.name))
      yield path;
  }
}
