import { describe, expect, test } from 'vitest';
import { Manifest } from '../../broker/platforms/manifest.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { plainSentence } from '../../broker/sentences/part.ts';
import { sentenceOf, sentenceOfPath } from '../../broker/sentences/sentences.ts';
import { callOf, platformOf, said } from './describe-call.ts';

const code = platformOf({
  sentences: {
    'POST /repos/*/*/issues': 'create an issue in **{1}/{2}**[: *{/title}*]',
    'PUT /repos/*/*/contents/**': 'write **{**}** in **{1}/{2}**[ on branch **{/branch}**]',
    'PUT /repos/*/*/contents/.github/**': 'write a workflow **{**}** in **{1}/{2}**',
    'DELETE /repos/*/*/branches/**/protection/*': 'end {3} of **{**}** in **{1}/{2}**',
    'POST /issues/*/labels': 'label issue {1} with **{/labels/*}**',
    'POST /mail': 'send mail[ to **{recipients}**| to nobody][: *{/subject}*]',
    'POST /raw': 'send mail[ to **{recipients}**][: *{subject /message/raw}*]',
    'POST /refunds': 'refund **{amount /amount /currency}** of payment {/payment}',
    'POST /quotes': 'offer **{amount /total/value /total/currency decimal}**',
    'GET /search': 'search for *{?q}*',
    'POST /files': 'upload {count /files} files',
    'POST /escaped': 'say \\{this\\} \\[\\] 2 \\* 3 to **{/to}**',
  },
  recipients: {
    'POST /mail': ['/to', '/to/*', '/cc/*'],
    'POST /raw': [{ pointer: '/message/raw', format: 'rfc822-base64url' }],
  },
  minor_units: { ISK: 2, UGX: null },
});
const raw = (text: string) => Buffer.from(text).toString('base64url');

describe('a template is filled with values of the call', () => {
  test.each<[string, JsonObject | undefined, string]>([
    ['POST /repos/acme/shop/issues', { title: 'Broken login' }, 'create an issue in acme/shop: “Broken login”'],
    ['POST /repos/acme/shop/issues', {}, 'create an issue in acme/shop'],
    [
      'POST /repos/acme/shop/issues',
      { title: 'A', body: 'B', labels: ['x'] },
      'create an issue in acme/shop: “A” and 2 other fields',
    ],
    ['POST /repos/acme/shop/issues', { body: 'B' }, 'create an issue in acme/shop with 1 field'],
    ['POST /repos/acme/shop/issues?x=1', { title: 'A' }, 'create an issue in acme/shop: “A” and 1 other field'],
    [
      'PUT /repos/a/b/contents/src/main.ts',
      { branch: 'main', content: 'eA' },
      'write src/main.ts in a/b on branch main and 1 other field',
    ],
    ['PUT /repos/a/b/contents/.github/workflows/x.yml', undefined, 'write a workflow workflows/x.yml in a/b'],
    ['DELETE /repos/a/b/branches/feature/x/protection/reviews', undefined, 'end reviews of feature/x in a/b'],
    ['POST /issues/7/labels', { labels: ['bug'] }, 'label issue 7 with bug'],
    ['POST /issues/7/labels', { labels: ['bug', 'two words'] }, 'label issue 7 with bug and “two words”'],
    ['POST /issues/7/labels', { labels: ['a', 'b', 'c', 'd', 'e'] }, 'label issue 7 with a, b, c and 2 more'],
    ['POST /mail', { to: 'ann@acme.example', subject: 'Hi' }, 'send mail to ann@acme.example: “Hi”'],
    ['POST /mail', { to: ['a@x.example'], cc: ['b@x.example'] }, 'send mail to a@x.example and b@x.example'],
    ['POST /mail', { subject: 'Hi' }, 'send mail to nobody: “Hi”'],
    [
      'POST /raw',
      { message: { raw: raw('To: ann@x.example\r\nSubject: =?utf-8?B?w4lpcmU=?= =?utf-8?Q?_a?=\r\n\r\nbody') } },
      'send mail to ann@x.example: “Éire a”',
    ],
    [
      'POST /raw',
      { message: { raw: raw('To: a@x.example\r\nSubject: 1\r\nSubject: 2\r\n\r\n'), threadId: '5' } },
      'send mail to a@x.example and 1 other field',
    ],
    ['GET /search?q=a%20b', undefined, 'search for “a b”'],
    ['GET /search?q=a&q=b&page=2', undefined, 'search for (given 2 times) and 1 other field'],
    ['POST /files', { files: [{ a: 1 }, { b: 2 }] }, 'upload 2 files'],
    ['POST /escaped', { to: 'x' }, 'say {this} [] 2 * 3 to x'],
  ])('%s %j: %s', (operation, body, expected) => {
    expect(said(code, operation, body)).toBe(expected);
  });

  test("a template's version changes with its text, and the sentence has the version of its template", () => {
    const other = platformOf({ sentences: { 'POST /repos/*/*/issues': 'open an issue in **{1}/{2}**' } });
    const call = callOf('POST /repos/a/b/issues', {});
    const [first, second] = [sentenceOf(code, call), sentenceOf(other, call)];
    expect(first.template).toMatch(/^[0-9a-f]{16}$/);
    expect(second.template).not.toBe(first.template);
    expect(sentenceOf(code, callOf('POST /elsewhere')).template).toBeNull();
  });

  test('the object of the call is strong, free text is quoted', () => {
    expect(sentenceOf(code, callOf('POST /repos/a/b/issues', { title: 'T' })).parts).toEqual([
      { text: 'create an issue in ' },
      { value: 'a/b', strong: true },
      { text: ': ' },
      { value: 'T', quoted: true },
    ]);
  });
});

describe('amounts', () => {
  test.each<[JsonObject, string]>([
    [{ amount: 4500, currency: 'EUR' }, '45.00 EUR'],
    [{ amount: 4500, currency: 'eur' }, '45.00 EUR'],
    [{ amount: '4500', currency: 'eur' }, '45.00 EUR'],
    [{ amount: 5, currency: 'EUR' }, '0.05 EUR'],
    [{ amount: -4500, currency: 'EUR' }, '-45.00 EUR'],
    [{ amount: 123456789, currency: 'EUR' }, '1,234,567.89 EUR'],
    [{ amount: 500, currency: 'JPY' }, '500 JPY'],
    [{ amount: 5124, currency: 'KWD' }, '5.124 KWD'],
    // Intl would format 5,000 IQD and 500 LBP.
    [{ amount: 5000, currency: 'IQD' }, '5.000 IQD'],
    [{ amount: 500, currency: 'LBP' }, '5.00 LBP'],
    [{ amount: 500, currency: 'ISK' }, '5.00 ISK'],
    [{ amount: 500, currency: 'UGX' }, '500 (in a unit of UGX that is not known)'],
    [{ amount: 500 }, '500 (no currency given)'],
    [{ amount: 500, currency: null }, '500 (no currency given)'],
    [{ amount: 500, currency: 'XXX' }, '500 (“XXX” is not a known currency)'],
    [{ amount: 500, currency: 'EURO' }, '500 (“EURO” is not a known currency)'],
    [{ amount: 500, currency: 'ſek' }, '500 (“ſek” is not a known currency)'],
    [{ amount: 500, currency: 'E\u200bUR' }, '500 (“E⟦U+200B⟧UR” is not a known currency)'],
    [{ amount: 500, currency: ['EUR'] }, '500 (its currency cannot be read)'],
    [{ amount: 45.0000001, currency: 'EUR' }, '(an amount that cannot be read)'],
    [{ amount: 45.5, currency: 'EUR' }, '(an amount that cannot be read)'],
    [{ amount: Number('1e309'), currency: 'EUR' }, '(an amount that cannot be read)'],
    [{ amount: 1e21, currency: 'EUR' }, '(an amount that cannot be read)'],
    [{ amount: -0, currency: 'EUR' }, '0.00 EUR'],
    [{ amount: '0x10', currency: 'EUR' }, '(an amount that cannot be read)'],
    [{ amount: ' 45', currency: 'EUR' }, '(an amount that cannot be read)'],
    [{ amount: '٤٥', currency: 'EUR' }, '(an amount that cannot be read)'],
    [{ amount: [4500], currency: 'EUR' }, '(an amount that cannot be read)'],
    [{ amount: 4500, currency: 'EUR', Amount: 1 }, '45.00 EUR (given in another spelling as well)'],
  ])('%j: %s', (body, expected) => {
    expect(said(code, 'POST /refunds', { ...body, payment: 'pay_1' })).toMatch(
      new RegExp(`^refund ${expected.replace(/[.()+]/g, '\\$&')} of payment pay_1(?: and 1 other field)?$`),
    );
  });

  test.each<[JsonObject, string]>([
    [{ value: 45, currency: 'EUR' }, '45.00 EUR'],
    [{ value: '45.5', currency: 'EUR' }, '45.50 EUR'],
    [{ value: 45.0000001, currency: 'EUR' }, '(an amount that cannot be read)'],
    [{ value: 45.5, currency: 'JPY' }, '(an amount that cannot be read)'],
    [{ value: '45.00', currency: 'JPY' }, '45 JPY'],
    [{ value: 1e-7, currency: 'EUR' }, '(an amount that cannot be read)'],
  ])('as decimals, %j: %s', (total, expected) => {
    expect(said(code, 'POST /quotes', { total })).toBe(`offer ${expected}`);
  });
});

describe('without a template', () => {
  test.each<[string, JsonObject | undefined, string]>([
    ['POST /x/y', { a: 1, b: 2 }, 'send a POST to /x/y with 2 fields'],
    ['DELETE /x/y', undefined, 'send a DELETE to /x/y'],
    ['GET /x?a=1', undefined, 'read /x with 1 parameter'],
  ])('%s %j: %s', (operation, body, expected) => {
    expect(said(code, operation, body)).toBe(expected);
  });

  const graph = platformOf({
    kind: 'graphql',
    sentences: { 'mutation issueCreate': 'create an issue[: *{/input/title}*]', 'mutation issue*': 'change an issue' },
  });
  test.each<[string, JsonObject, string]>([
    [
      'mutation($t: String!) { issueCreate(input: { title: $t, teamId: "x" }) { id } }',
      { t: 'Hi' },
      'create an issue: “Hi” and 1 other field',
    ],
    ['mutation { issueDelete(id: "1") { success } }', {}, 'change an issue with 1 field'],
    ['mutation { teamDelete(id: "1") { success } }', {}, 'run the GraphQL mutation teamDelete with 1 argument'],
    [
      'mutation { a: issueCreate(input: {}) { id } b: issueCreate(input: {}) { id } }',
      {},
      'run a GraphQL mutation of 2 fields: issueCreate, issueCreate',
    ],
    ['{ viewer { id } __typename }', {}, 'run the GraphQL query viewer'],
    ['{ a: x, b: x, c: x, d: x, e: x, f: x, g: x }', {}, 'run a GraphQL query of 7 fields: x, x, x, x, x and 2 more'],
  ])('GraphQL %s', (query, variables, expected) => {
    expect(said(graph, 'POST /', { query, variables })).toBe(expected);
  });

  const tools = platformOf({ kind: 'mcp', sentences: { 'tool create_*': 'create *{/name}* there' } });
  test('a tool of an MCP server is named with its title', () => {
    const call = callOf('POST /tools/delete_all', { a: 1, b: 2 });
    expect(plainSentence(sentenceOf(tools, call, { toolTitle: 'Delete “all” of it' }))).toBe(
      'use the tool delete_all (“Delete ⟦U+201C⟧all⟦U+201D⟧ of it”) with 2 arguments',
    );
    expect(plainSentence(sentenceOf(tools, call))).toBe('use the tool delete_all with 2 arguments');
    expect(said(tools, 'POST /tools/create_page', { name: 'x' })).toBe('create “x” there');
  });

  test('when only method and path are known, values of the body are omitted', () => {
    const path = (operation: string) => plainSentence(sentenceOfPath(code, callOf(operation)));
    expect(path('POST /repos/acme/shop/issues')).toBe('create an issue in acme/shop');
    expect(path('POST /mail')).toBe('send mail');
    expect(path('POST /refunds')).toBe('send a POST to /refunds');
    expect(path('GET /x')).toBe('read /x');
    expect(plainSentence(sentenceOfPath(tools, callOf('POST /tools/delete_all')))).toBe('use the tool delete_all');
    expect(plainSentence(sentenceOfPath(undefined, callOf('DELETE /x')))).toBe('send a DELETE to /x');
  });
});

describe('malformed templates are refused, with what to write', () => {
  test.each([
    ['POST /a', 'x {title}', 'which is no value of a call'],
    ['POST /a', 'x {1}', 'but the path has 0 "*"'],
    ['POST /a/*', 'x {**}', 'but the path has 0 "**"'],
    ['GET /a', 'x {/title}', 'a GET has no body'],
    ['POST /a', 'x {/title', 'a "{" that is not closed'],
    ['POST /a', 'x [{/title}', 'a "[" that is not closed'],
    ['POST /a', 'x ]', 'a "]" too many'],
    ['POST /a', 'x **{/a}', 'a "**" that is not closed'],
    ['POST /a', 'x **y**', 'has no value between'],
    ['POST /a', 'x [a [b]]', 'a "[" inside'],
    ['POST /a', 'x {/a~2}', 'which is no JSON pointer'],
    ['POST /a', 'x {amount /a}', 'which is no value of a call'],
    ['POST /a', 'x \u202e{/a}', 'has a character that cannot be seen'],
    ['POST /a', '{/a}{/b}{/c}{/d}{/e}{/f}{/g}{/h}{/i}', 'names 9 values; at most 8'],
  ])('%s: %s', (operation, template, words) => {
    const manifest = { kind: 'rest', base_url: 'https://api.example', auth: { type: 'bearer' }, scopes: {} };
    const parsed = Manifest.safeParse({ ...manifest, sentences: { [operation]: template } });
    expect(parsed.error?.issues.map(({ path, message }) => ({ path, message }))).toEqual([
      { path: ['sentences', operation], message: expect.stringContaining(words) },
    ]);
  });
});
