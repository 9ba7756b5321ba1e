/** Keys of GitHub itself in answers: answers that may contain one by GitHub's own description are masked, and answers of bytes are streamed unmasked. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CallAsk, Method } from '../../broker/policy/facts.ts';
import { classify } from '../../broker/policy/operation.ts';
import { rulesOf } from './classified.ts';

const rules = rulesOf('github');
const [, ...listed] = readFileSync(join(import.meta.dirname, 'coverage/github-keys.txt'), 'utf8')
  .trim()
  .split('\n');

function callOf(operation: string): CallAsk {
  const [method = '', path = ''] = operation.replaceAll(/\{[^}]*\}|\*\*?/g, 'x1').split(' ');
  return { method: method as Method, path, query: '', headers: {}, body: undefined };
}
const maskedIn = (operation: string): readonly string[] =>
  rules.masks
    .filter(
      ({ operation: one }) =>
        one.kind === 'http' && one.method === callOf(operation).method && one.path.matches(callOf(operation).path),
    )
    .flatMap(({ members }) => members);

describe('keys of GitHub in its answers', () => {
  test.each(listed.filter((operation) => classify(rules, callOf(operation)).kind === 'classified'))(
    '%s',
    (operation) => {
      expect(maskedIn(operation)).toContain(
        operation.endsWith('/runners/downloads') ? 'temp_download_token' : 'temp_clone_token',
      );
    },
  );

  test('an operation whose answer is bytes of any length is not masked', () => {
    const bytes = [
      ...rules.follow.map(({ source }) => source),
      'GET /repos/*/*/contents/**',
      'GET /repos/*/*/git/blobs/*',
      'GET /repos/*/*/compare/**',
    ];
    expect(bytes.filter((operation) => maskedIn(operation).length > 0)).toEqual([]);
  });
});
