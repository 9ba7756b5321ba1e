import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../broker/config-file/problems.ts';
import { listReferences, referenceKey, referenceOf, resolveReferences } from '../../broker/config-file/secrets.ts';
import { newFolder } from '../world/stores.ts';
import { read } from './governance-world.ts';

const FILE = `connections:
  a: { platform: crm, secret: { env: TOKEN } }
  b: { platform: crm, secret: { file: secrets/b } }
  c: { platform: crm }
agents:
  t: { public_key: { file: t.pem } }
`;

const folder = newFolder();
mkdirSync(join(folder, 'secrets'));
const put = (name: string, content: string | Buffer) => writeFileSync(join(folder, name), content);
put('secrets/b', 'CANARY-b\n');
put('t.pem', 'a key\r\n');

const problems = (text: string, environment: Record<string, string> = {}) => {
  const resolved = resolveReferences(read(text), folder, environment);
  return resolved.ok ? [] : resolved.problems.map(formatProblem);
};

describe('secrets that a governance file names', () => {
  it('are listed with their paths', () => {
    expect(listReferences(read(FILE))).toEqual([
      { path: ['connections', 'a', 'secret'], reference: { env: 'TOKEN' } },
      { path: ['connections', 'b', 'secret'], reference: { file: 'secrets/b' } },
      { path: ['agents', 't', 'public_key'], reference: { file: 't.pem' } },
    ]);
  });

  it('are read relative to the file, without a trailing line break, and cannot be printed', () => {
    const resolved = resolveReferences(read(FILE), folder, { TOKEN: 'CANARY-a' });
    if (!resolved.ok) throw new Error('not resolved');
    expect(Object.fromEntries([...resolved.values].map(([key, secret]) => [key, secret.reveal()]))).toEqual({
      'env:TOKEN': 'CANARY-a',
      'file:secrets/b': 'CANARY-b',
      'file:t.pem': 'a key',
    });
    expect(inspect(resolved, { depth: 9 }) + JSON.stringify([...resolved.values])).not.toContain('CANARY');
  });

  it('are reported together when they are missing, with their lines', () => {
    const text = FILE.replace('secrets/b', 'secrets/none').replace('t.pem', '../none.pem');
    expect(problems(text)).toEqual([
      'governance.yaml:2:23: connections.a.secret: the environment variable TOKEN is not set where this file is read.',
      `governance.yaml:3:23: connections.b.secret: the file ${join(folder, 'secrets/none')} cannot be read: there is none.`,
      `governance.yaml:6:8: agents.t.public_key: the file ${join(folder, '..', 'none.pem')} cannot be read: there is none.`,
    ]);
  });

  it.each([
    ['an empty file', '', 'is empty.'],
    ['a file of one line break', '\n', 'is empty.'],
    ['a file of 64 KiB and a byte', 'x'.repeat(64 * 1024 + 1), 'is larger than 64 KiB; no key or token is.'],
    ['bytes that are no text', Buffer.from([0xff, 0xfe, 0x41]), 'is not text in UTF-8.'],
    ['text with a NUL', 'CANARY\0', 'holds something that is no text.'],
  ])('refuse %s, without repeating the content', (_, content, message) => {
    put('odd', content);
    const found = problems('connections: { a: { platform: crm, secret: { file: odd } } }');
    expect(found).toEqual([`governance.yaml:1:36: connections.a.secret: the file ${join(folder, 'odd')} ${message}`]);
  });

  it('cannot be private keys where a public key is named, even if they are the secret of something else', () => {
    put('agent.key', '-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n');
    const file = 'connections:\n  b: { platform: crm, secret: { file: agent.key } }\n';
    const found = [
      expect.stringMatching(
        /public_key: this file holds a private key, which never leaves the agent; it was not sent\. Name a file with the public key: openssl pkey/,
      ),
    ];
    const agents = 'agents:\n  t: { public_key: { file: agent.key } }\n';
    expect(problems(agents)).toEqual(found);
    expect(problems(file + agents)).toEqual(found);
    expect(problems(file)).toEqual([]);
    const without = resolveReferences(read(agents), folder, {}, { secrets: false });
    expect(without.ok ? [] : without.problems.map(formatProblem)).toEqual(found);
  });

  it('cannot be folders or pipes', () => {
    expect(problems('connections: { a: { platform: crm, secret: { file: secrets } } }')[0]).toContain(
      'is no plain file.',
    );
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    expect(problems('connections: { a: { platform: crm, secret: { file: pipe } } }')[0]).toContain('is no plain file.');
  });

  it('refuse an empty variable, and a name of the object prototype', () => {
    const text = (name: string) => `connections: { a: { platform: crm, secret: { env: ${name} } } }`;
    expect(problems(text('TOKEN'), { TOKEN: '' })[0]).toContain('the environment variable TOKEN is empty.');
    expect(problems(text('constructor'))[0]).toContain('the environment variable constructor is not set');
    expect(problems(text('TOKEN'), { TOKEN: 'x' })).toEqual([]);
  });

  it('have a key from which the reference can be restored', () => {
    for (const reference of [{ env: 'A' }, { file: 'env:odd: name' }, { file: '/run/secrets/x' }])
      expect(referenceOf(referenceKey(reference))).toEqual(reference);
  });
});
