import { describe, expect, test } from 'vitest';
import { DEFAULT_POLICY_RULES } from '../../broker/policy/default-policy.ts';
import { readStoredRules } from '../../broker/store/stored-json.ts';

describe('the stored rules of a version', () => {
  test('are parsed as they were stored', () => {
    expect(readStoredRules(JSON.stringify(DEFAULT_POLICY_RULES), 'rules')).toEqual(DEFAULT_POLICY_RULES);
    const all = {
      name: 'n',
      effect: 'suspend',
      platforms: ['*'],
      scopes: ['demo:read'],
      methods: ['GET'],
      endpoints: ['/**'],
      when: 'true',
    };
    expect(readStoredRules(JSON.stringify([all]), 'rules')).toEqual([all]);
  });

  test.each([
    ['not a list', '{}'],
    ['not JSON', '[{"effect":'],
    ['an unknown effect', '[{"effect":"permit"}]'],
    ['a condition under another name', '[{"effect":"allow","if":"request.body.amount < 10"}]'],
    ['an unknown method', '[{"effect":"allow","methods":["YELL"]}]'],
  ])('%s is an error that names the rules', (_what, text) => {
    expect(() => readStoredRules(text, 'rules of policy p')).toThrow('The stored rules of policy p cannot be read');
  });
});
