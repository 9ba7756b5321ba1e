/** Multipart bodies: what is read equals what Node's own parser reads, and what parsers may read differently is not read. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { judgedParts } from '../../broker/calls/action-body.ts';
import { parseForm } from '../../broker/calls/parse-form.ts';
import { parseMultipart } from '../../broker/calls/parse-multipart.ts';
import { encodeParts, partsProblem } from '../../broker/egress/parts.ts';
import { type JsonObject, UnreadBody } from '../../broker/policy/facts.ts';
import { makeRandom } from '../world/random.ts';

/** Printed on failure, to reproduce it. */
const SEED = Number(process.env.PARTS_SEED ?? Math.floor(Math.random() * 2 ** 32));
function chooser() {
  const random = makeRandom(SEED);
  const whole = (from: number, to: number) => from + Math.floor(random() * (to - from + 1));
  return { whole, pick: <T>(of: readonly T[]): T => of[whole(0, of.length - 1)]! };
}

const TYPE = 'multipart/form-data; boundary=b';
const read = (body: string, type = TYPE) => parseMultipart(type, Buffer.from(body));
const part = (head: string, content = 'x') => `--b\r\n${head}\r\n\r\n${content}\r\n`;
const FIELD = 'Content-Disposition: form-data; name="a"';
const END = '--b--\r\n';

describe('multipart bodies that are read', () => {
  test.each<[string, string, JsonObject]>([
    [
      'fields',
      `${part(FIELD, 'é')}${part('Content-Disposition: form-data; name="c[d]"', '1')}${END}`,
      { a: 'é', c: { d: '1' } },
    ],
    ['no part', END, {}],
    ['an end without a line', `${part(FIELD)}--b--`, { a: 'x' }],
    ['a field with its type', `${part(`${FIELD}\r\nContent-Type: text/plain; charset=utf-8`)}${END}`, { a: 'x' }],
    ['lines in a field', `${part(FIELD, 'x\r\ny')}${END}`, { a: 'x\r\ny' }],
    [
      'a file',
      `${part('content-disposition: form-data; name="f"; filename="a b.png"\r\nContent-Type: image/png', '\x00\r\n\r\n')}${END}`,
      {
        f: {
          filename: 'a b.png',
          content_type: 'image/png',
          bytes: 5,
          sha256: createHash('sha256').update('\0\r\n\r\n').digest('hex'),
        },
      },
    ],
    [
      'a file that was not chosen in a browser',
      `${part(`${FIELD}; filename=""\r\nContent-Type: application/octet-stream`, '')}${END}`,
      {
        a: {
          filename: '',
          content_type: 'application/octet-stream',
          bytes: 0,
          sha256: createHash('sha256').digest('hex'),
        },
      },
    ],
  ])('%s', (_, body, is) => {
    expect(read(body)).toEqual(is);
  });
});

describe('multipart bodies that are not read', () => {
  test.each<[string, string, string?]>([
    ['another type', `${part(FIELD)}${END}`, 'multipart/mixed; boundary=b'],
    ['no boundary', `${part(FIELD)}${END}`, 'multipart/form-data'],
    ['two boundaries', `${part(FIELD)}${END}`, 'multipart/form-data; boundary=b; boundary=c'],
    ['a charset', `${part(FIELD)}${END}`, 'multipart/form-data; boundary=b; charset=utf-16'],
    ['something before', `x\r\n${part(FIELD)}${END}`],
    ['something after', `${part(FIELD)}${END}x`],
    ['no end', part(FIELD)],
    ['a name twice', `${part(FIELD)}${part(FIELD, 'y')}${END}`],
    ['bare line ends', `--b\n${FIELD}\n\nx\n--b--\n`],
    ['a boundary in a line', `${part(FIELD, 'x--b')}${END}`],
    ['a longer boundary', `--bc\r\n${FIELD}\r\n\r\nx\r\n${END}`],
    ['a part without a head', `--b\r\nx\r\n${END}`],
    ['a folded head', `${part('Content-Disposition: form-data;\r\n name="a"')}${END}`],
    ['a name without quotes', `${part('Content-Disposition: form-data; name=a')}${END}`],
    ['a file without a name', `${part(`${FIELD}; filename=""`)}${END}`],
    ['an escaped name', `${part('Content-Disposition: form-data; name="\\a"')}${END}`],
    ['a name in percent', `${part('Content-Disposition: form-data; name="%61"')}${END}`],
    ['an extended name', `${part('Content-Disposition: form-data; name="a"; name*=utf-8\'\'b')}${END}`],
    ['an extended filename', `${part(`${FIELD}; filename="a"; filename*=utf-8''b`)}${END}`],
    ['two dispositions', `${part(`${FIELD}\r\nContent-Disposition: form-data; name="b"`)}${END}`],
    ['another head', `${part(`${FIELD}\r\nX-A: b`)}${END}`],
    ['a coding', `${part(`${FIELD}\r\nContent-Transfer-Encoding: base64`, 'eA==')}${END}`],
    ['another length', `${part(`${FIELD}\r\nContent-Length: 2`)}${END}`],
    ['a field of JSON', `${part(`${FIELD}\r\nContent-Type: application/json`, '{}')}${END}`],
    ['a field in another charset', `${part(`${FIELD}\r\nContent-Type: text/plain; charset=utf-7`)}${END}`],
    ['a NUL in a field', `${part(FIELD, 'x\0y')}${END}`],
    ['a name with brackets that stray', `${part('Content-Disposition: form-data; name="a[b"')}${END}`],
    [
      'a list with indices and without',
      `${part('Content-Disposition: form-data; name="a[b]"')}${part('Content-Disposition: form-data; name="a[]"')}${END}`,
    ],
    [
      'a boundary that Rack ends at its comma',
      `--b,c\r\n${FIELD}\r\n\r\n\r\n--b\r\n${FIELD}\r\n\r\nx\r\n--b--\r\n\r\n--b,c--\r\n`,
      'multipart/form-data; boundary="b,c"',
    ],
    [
      'too many parts',
      Array.from({ length: 201 }, (_, i) => part(`Content-Disposition: form-data; name="a${i}"`)).join('') + END,
    ],
  ])('%s', (_, body, type) => {
    expect(read(body, type)).toBeInstanceOf(UnreadBody);
  });

  test('bytes that are not UTF-8', () => {
    const body = Buffer.from(`${part(FIELD, '\xff')}${END}`, 'latin1');
    expect(parseMultipart(TYPE, body)).toBeInstanceOf(UnreadBody);
  });
});

test.each(['a[b]=x&a[]=y', 'a[5]=x&a[]=y', 'a[]=x&a[b]=y', 'a[1]=x', 'a[1]=x&a[0]=y', 'a[00]=x', 'b[c][0][3]=x'])(
  'a form with list indices that parsers read differently is not read: %s',
  (text) => expect(parseForm(text)).toBeInstanceOf(UnreadBody),
);

test('forms with indices from 0, or with names, are read (counter-example)', () => {
  expect(parseForm('a[0]=x&a[1]=y')).toEqual({ a: ['x', 'y'] });
  expect(parseForm('a[1]=x&a[b]=y&7=z')).toEqual({ a: { 1: 'x', b: 'y' }, 7: 'z' });
  expect(read(`${part('Content-Disposition: form-data; name="a[1]"')}${END}`)).toBeInstanceOf(UnreadBody);
});

test('a form of more fields than PHP reads is not read', () => {
  const fields = (count: number) => Array.from({ length: count }, (_, i) => `f${i}=`).join('&');
  expect(parseForm(fields(1000))).toMatchObject({ f999: '' });
  expect(parseForm(fields(1001))).toBeInstanceOf(UnreadBody);
});

test('an object sent as multipart is judged like the sent bytes', async () => {
  const texts = ['x', 'a\nb', 'é', '', '1', 'a"b', 'a%b', 'a\\b'];
  const { pick, whole } = chooser();
  for (let turn = 0; turn < 500; turn++) {
    const value = () => {
      const data = pick(texts);
      return whole(0, 2)
        ? pick<string | number | boolean>([data, 7, true])
        : { filename: pick(texts), data, content_type: pick(['Text/CSV', 'image/png']) };
    };
    const object = Object.fromEntries(
      Array.from({ length: whole(0, 3) }, () => [
        pick(['a', 'b[c]', 'a%', 'é', 'f"', 'g[']),
        whole(0, 3) ? value() : [value(), value()],
      ]),
    ) as JsonObject;
    if (partsProblem(object) !== undefined) continue;
    const { type, bytes } = await encodeParts(object);
    const [given, sent] = [judgedParts(object), parseMultipart(type, bytes)];
    const note = `seed ${SEED}: ${JSON.stringify(object)}`;
    if (sent instanceof UnreadBody) expect(given, note).toBeInstanceOf(UnreadBody);
    else expect(given, note).toEqual(sent);
  }
});
