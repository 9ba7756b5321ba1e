import { format, inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';

const CANARY = 'CANARY-4f1b9a';

describe('CX-11 a secret cannot be printed or serialised', () => {
  const connection = { label: 'crm', secret: new Secret(CANARY), bytes: new Secret(Buffer.from(CANARY)) };
  class Failure extends Error {
    connection = connection;
  }
  const hex = Buffer.from(CANARY).toString('hex');
  const ways: Record<string, () => string> = {
    'JSON.stringify': () => JSON.stringify(connection),
    'util.inspect': () => inspect(connection, { depth: 9 }),
    'util.inspect with hidden properties and getters': () =>
      inspect(connection, { showHidden: true, getters: true, depth: 9 }),
    'util.inspect without custom functions': () => inspect(connection, { customInspect: false, showHidden: true }),
    'util.format': () => format('%s %o %j', connection.secret, connection, connection),
    'an error with the secret as a member': () => inspect(new Failure('x')),
    'a template': () => `${connection.secret} ${connection.bytes}`,
    'string addition': () => `${connection.secret}`.concat(String(connection.bytes)),
    'an object spread': () => JSON.stringify({ ...connection.secret }) + inspect({ ...connection.bytes }),
    structuredClone: () => inspect(structuredClone(connection.secret), { showHidden: true }),
    'the keys and values of the object': () =>
      Reflect.ownKeys(connection.secret).join() + Object.values(connection.bytes).join(),
  };

  for (const [name, print] of Object.entries(ways)) {
    it(`by ${name}`, () => {
      const text = print();
      expect(text).not.toContain(CANARY);
      expect(text).not.toContain(hex);
      expect(text).not.toContain(hex.slice(0, 4).match(/../g)!.join(' '));
    });
  }

  it('shows [secret] instead', () => {
    expect(JSON.stringify(connection)).toBe('{"label":"crm","secret":"[secret]","bytes":"[secret]"}');
    expect(inspect(connection.secret)).toBe('[secret]');
    expect(String(connection.secret)).toBe('[secret]');
  });

  it('is returned by reveal() only', () => {
    expect(connection.secret.reveal()).toBe(CANARY);
    expect(connection.bytes.reveal().toString()).toBe(CANARY);
  });
});

describe('comparing secrets', () => {
  it('accepts secrets, text and bytes', () => {
    const secret = new Secret('grün');
    expect(secret.equals(new Secret('grün'))).toBe(true);
    expect(secret.equals(new Secret(Buffer.from('grün')))).toBe(true);
    expect(secret.equals('grün')).toBe(true);
    expect(secret.equals(Buffer.from('grün'))).toBe(true);
    expect(secret.equals('grun')).toBe(false);
    expect(secret.equals('')).toBe(false);
    expect(secret.equals(new Secret('grün '))).toBe(false);
  });

  it('copies bytes, so that the caller may wipe its own', () => {
    const bytes = Buffer.from(CANARY);
    const secret = new Secret(bytes);
    bytes.fill(0);
    expect(secret.equals(CANARY)).toBe(true);
  });
});
