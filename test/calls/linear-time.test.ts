/** Text of an agent or a platform is processed in linear, not quadratic, time, so that one request cannot block the broker. */
import { describe, expect, test } from 'vitest';
import { piiKinds } from '../../broker/audit/pii.ts';
import { judgeBody } from '../../broker/calls/judge-body.ts';
import { fromBase64 } from '../../broker/console/static/request-view/text.js';
import { readAddresses, readMessageRecipients, readMessageSubject } from '../../broker/policy/addresses.ts';
import { nameList } from '../../broker/policy/names.ts';
import { refuseRecipients } from '../../broker/policy/recipients.ts';
import { rewriteLinks } from '../../broker/proxy/links.ts';
import { call, crmRules } from '../policy/world.ts';

const KIB = 1024;
/** Milliseconds of CPU time. Quadratic work takes minutes, linear work some tens of milliseconds. */
const MAX_MS = 2_000;

const PARTS = 'multipart/form-data; boundary=b';
const FORM = 'application/x-www-form-urlencoded';
const judged = (type: string) => (text: string) => judgeBody({ 'content-type': type }, Buffer.from(text));
const inMessage = (read: (raw: string) => unknown) => (text: string) => read(Buffer.from(text).toString('base64url'));
const ALLOWED = Array.from({ length: 1_000 }, (_, i) => `a${i}@partner.example`);
const PLACE = {
  platform: new URL('https://api.example/v1'),
  proxyUrl: '/proxy/api',
  asked: new URL('https://api.example/v1/items'),
};

/** Repeated pieces by reader; some with text before and after them. */
const WORST: Record<string, { read: (text: string) => unknown; kib?: number; texts: readonly (string | string[])[] }> =
  {
    'a body in parts': {
      read: judged(PARTS),
      texts: [
        '--b',
        '--b; name=',
        '--b; name="x',
        '--b\n ',
        '--b;name="\\\\',
        '; name*=method',
        ['--b\r\na:', '\t', '\0\r\n\r\n\r\n--b--'],
      ],
    },
    'parts without a boundary': {
      read: judged('multipart/form-data'),
      texts: ['; name=', ';name="\\', ';\n name=m', ';'],
    },
    'a form': { read: judged(FORM), texts: ['&', '&method', '&a=b', '&%6d', '&[m]', 'a[', '%', ';'] },
    'a form, parts and JSON in which names are looked for': {
      read: (text) =>
        [FORM, PARTS, 'text/json'].map((type) =>
          judgeBody({ 'content-type': type }, Buffer.from(text), { refused: nameList(['token', 'x-amz-*']) }),
        ),
      texts: ['&', '&%74', '&%74%6F%6B%65', '&tokee', '&[t]', '&＿', '"a":', '"\\u0074":', ['{', '"t":1,', '']],
    },
    JSON: { read: judged('application/json'), texts: ['[', '"\\u0061', '{"a":', ' ', '1e'] },
    'a media type': {
      read: (text) => judgeBody({ 'content-type': `text/plain;charset=${text}x` }, Buffer.from('a')),
      kib: 16,
      texts: [' ', ' a'],
    },
    'personal data': { read: piiKinds, texts: ['a', 'a.', 'a@', '@a.', '1 ', '+1', 'AA11 ', '4111 1111 1111 1111 '] },
    'a list of addresses': { read: readAddresses, texts: ['a,', '"', '(', '\\', '=?a?q?', '<', ' '] },
    'recipients, each against a list of a thousand': {
      read: (to) => refuseRecipients(ALLOWED, crmRules, call({ method: 'POST', path: '/messages', body: { to } })),
      texts: ['a,', 'a@partner.example,'],
    },
    'recipients of a message': {
      read: inMessage(readMessageRecipients),
      texts: [['to: ', 'a@b.example,', '\r\n\r\n'], '\r\n ', 'to: a\r\n', ':'],
    },
    'the subject of a message': {
      read: inMessage(readMessageSubject),
      texts: [
        ['subject: ', '=?utf-8?q?a?= ', '\r\n\r\n'],
        ['subject: ', '?=\t', '\r\n\r\n'],
        ['subject: ', '=?a', '\r\n\r\n'],
      ],
    },
    'the header Link': {
      read: (text) => rewriteLinks('link', text, PLACE),
      kib: 16,
      texts: ['<', '<a>; rel="', '<a>; rel=', '<a>;', ['<a>', '; rel="\\', ''], ','],
    },
    'base64 on the approval page': { read: fromBase64, texts: [['AAAA', ' ', '!'], ['A', '=', '!'], 'A= '] },
  };

const cpuMs = (work: () => unknown): number => {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
};

describe.each(Object.entries(WORST))('%s', (_, { read, kib = 256, texts }) => {
  test.each(texts.map((one) => (typeof one === 'string' ? ['', one, ''] : one)))('%j %j %j', (before, piece, after) => {
    const text = before + piece!.repeat((kib * KIB) / piece!.length) + after;
    expect(cpuMs(() => read(text))).toBeLessThan(MAX_MS);
  });
});
