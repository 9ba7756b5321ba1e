import { expect, test } from 'vitest';
import { Manifest } from '../../broker/platforms/manifest.ts';
import { withFree } from '../../broker/platforms/presets.ts';
import { manifestOf } from './classified.ts';

const manifest = (free: Record<string, unknown>) =>
  Manifest.safeParse({
    kind: 'rest',
    base_url: 'https://crm.example',
    auth: { type: 'bearer' },
    scopes: { 'crm:write': ['POST /boards/*/notes', 'GET /boards/*'] },
    free,
  });

test('a manifest lists members of the path, the query and the body, and amounts up to a limit', () => {
  expect(
    manifest({ 'POST /boards/*/notes': ['1', '?q', '/text', '/meta/a~1b', { member: '/amount', at_most: true }] })
      .success,
  ).toBe(true);
});

test.each([
  [{ 'POST /boards/*/notes': ['2'] }, /is not in the path, which has 1 \*/],
  [{ 'POST /boards/*/notes': ['text'] }, /write "\/text" of the body, "\?q" of the query, or "1"/],
  [{ 'POST /boards/*/notes': ['/to/*'] }, /write "\/text" of the body/],
  [{ 'GET /boards/*': ['/text'] }, /a GET has none/],
  [{ 'POST /boards/*/notes': [] }, />=1/],
  [{ 'POST /boards/*/notes': [{ member: '/a', at_most: 5 }] }, /or { member: "\/amount", at_most: true }/],
  [{ 'mutation x': ['/text'] }, /takes this only with a GraphQL endpoint/],
])('a manifest with %j is refused, with what to write', (free, says) => {
  expect(
    manifest(free)
      .error?.issues.map(({ message }) => message)
      .join(' '),
  ).toMatch(says);
});

test('a manifest that was stored before `free` existed has that of its built-in platform', () => {
  const { free, ...before } = manifestOf('slack');
  expect(free).toBeDefined();
  expect(withFree(before as Manifest).free).toEqual(free);
  expect(withFree({ ...before, free: {} } as Manifest).free).toEqual({});
});
