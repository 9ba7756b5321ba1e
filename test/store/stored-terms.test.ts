import { describe, expect, test } from 'vitest';
import { readConstraints, readScopes } from '../../broker/store/stored-terms.ts';

const GRANT = 'f1b9a3c0-0000-4000-8000-000000000000';

describe('the stored terms of a grant', () => {
  test('are parsed as they were stored', () => {
    expect(readScopes('["demo:read","demo:write"]', GRANT)).toEqual(['demo:read', 'demo:write']);
    expect(readConstraints('{}', GRANT)).toEqual({});
    const constraints = { recipients: ['*@acme.example'], repos: ['acme/*'], allow_repo_creation: true };
    const limits = { refs: ['agent/*'], ref_changes: ['create'] };
    expect(readConstraints(JSON.stringify(limits), GRANT)).toEqual(limits);
    expect(readConstraints(JSON.stringify(constraints), GRANT)).toEqual(constraints);
  });

  test.each(['', 'demo:read', '"demo:read"', '{"0":"demo:read"}', '["demo:read",1]', 'null'])(
    'scopes that were altered to %j are an error that names the grant',
    (text) => {
      expect(() => readScopes(text, GRANT)).toThrow(`scopes of grant ${GRANT}`);
    },
  );

  test.each([
    '',
    '[]',
    'null',
    '{"recipients":"*"}',
    '{"repos":[1]}',
    '{"allow_repo_creation":"yes"}',
    '{"refs":"*"}',
    '{"ref_changes":["force"]}',
  ])('constraints that were altered to %j are an error that names the grant', (text) => {
    expect(() => readConstraints(text, GRANT)).toThrow(`constraints of grant ${GRANT}`);
  });

  test('the error contains nothing of the stored value', () => {
    expect(() => readScopes('["hush', GRANT)).toThrow(/^(?!.*hush)/);
  });
});
