/**
 * Multipart bodies (`multipart/form-data`), valid and damaged: the parsed content is that of Node's parser (undici), name by name, byte by
 * byte.
 */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import { parseMultipart } from '../../../broker/calls/parse-multipart.ts';
import { type JsonObject, type JsonValue, UnreadBody } from '../../../broker/policy/facts.ts';
import { type Count, type Fuzzed, usually } from '../fuzz.ts';

const name = usually(
  fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g h', 'é', 'a[b]', 'a[c][]'),
  ...['', '_x', '__proto__', 'a[', 'a[]', '%61', 'x\\', 'x"y', 'x; filename="y"', "'", '\t'],
);
const filename = fc.option(usually(fc.constantFrom('a.txt', 'b c', '', 'é', '../x', 'x;y'), '..\\x', '%22', 'a"b'), {
  freq: 2,
});
const type = usually<string | undefined>(
  fc.constantFrom(undefined, 'text/plain', 'text/plain; charset=utf-8'),
  ...['text/plain; charset=utf-16', 'application/json', 'image/png', 'x'],
);
const more = usually(
  fc.constantFrom('', '', '\r\nContent-Transfer-Encoding: 8bit'),
  ...[
    '\r\nContent-Transfer-Encoding: base64',
    '\r\nContent-Length: 1',
    '\r\nX-Other: 1',
    '\r\nContent-Disposition: form-data; name="z"',
    '\r\n folded',
    "; filename*=UTF-8''z",
    '; name="y"',
    '\nX: y',
  ],
);
const content = fc
  .array(
    usually(
      fc.constantFrom('x', '1', 'é', '\r\n', '\n', '\r', '--', '"', '=', ' '),
      '--BOUND',
      '\r\n--BOUND',
      '\0',
      '\xff',
    ),
    {
      maxLength: 5,
    },
  )
  .map((all) => all.join(''));
const part = fc.tuple(name, filename, type, more, content).map(([called, file, media, other, inside]) => {
  const disposition = `Content-Disposition: form-data; name="${called}"${file === null ? '' : `; filename="${file}"`}`;
  return `--BOUND\r\n${disposition}${other}${media ? `\r\nContent-Type: ${media}` : ''}\r\n\r\n${inside}\r\n`;
});
const whole = fc
  .tuple(
    fc.array(part, { maxLength: 4 }),
    usually(fc.constantFrom('--BOUND--\r\n', '--BOUND--'), '--BOUND--\r\nx', '--BOUND', ''),
  )
  .map(([parts, end]) => parts.join('') + end);
const soup = fc
  .array(
    fc.constantFrom(
      '--BOUND',
      '\r\n',
      '\n',
      '--',
      'Content-Disposition: form-data; name="a"',
      '; filename="f"',
      ': ',
      'x',
      '\0',
      '"',
      ';',
      '--BOUND--\r\n',
    ),
    { maxLength: 10 },
  )
  .map((all) => all.join(''));
/** As text in which each character is a byte, except for UTF-8 sequences. */
const body = fc
  .tuple(
    fc.oneof({ weight: 9, arbitrary: whole }, soup),
    fc.nat(300),
    fc.constantFrom('', '', '', '', '\r', '\n', '-', '"', '\0', ';'),
  )
  .map(([text, at, put]) => (put === '' ? text : text.slice(0, at) + put + text.slice(at + (at % 2))))
  .map((text) => Buffer.concat([...text].map((one) => Buffer.from(one, one === '\xff' ? 'latin1' : 'utf8'))));

const TYPE = 'multipart/form-data; boundary=BOUND';

/** Names as written in the body: `a[b]`. */
function flat(value: JsonValue, own: string): [string, JsonValue][] {
  if (typeof value !== 'object' || value === null || Object.hasOwn(value, 'sha256')) return [[own, value]];
  return Object.entries(value).flatMap(([inner, one]) =>
    flat(one, own === '' ? inner : `${own}[${Array.isArray(value) ? '' : inner}]`),
  );
}

async function known(value: string | File): Promise<unknown> {
  if (typeof value === 'string') return value;
  const bytes = Buffer.from(await value.arrayBuffer());
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { filename: value.name, bytes: bytes.length, sha256 };
}

export function multipart(count: Count): Fuzzed {
  const property = fc.asyncProperty(body, async (bytes) => {
    const ours = parseMultipart(TYPE, bytes);
    if (ours instanceof UnreadBody) {
      expect(ours.why).toMatch(/^a body in parts with .+ is not read$/);
      return count('refused');
    }
    const request = new Response(bytes, { headers: { 'content-type': TYPE } });
    const theirs = await request.formData().catch(() => undefined);
    // Node rejects a body without parts, and contents that contain the boundary without its dashes.
    if (theirs === undefined) return count('refused by Node alone');
    count('accepted');
    const all = await Promise.all([...theirs].map(async ([own, value]) => [own, await known(value)]));
    const found = flat(ours, '').map(([own, value]) => {
      if (typeof value === 'string') return [own, value];
      const { content_type: _, ...file } = value as JsonObject;
      return [own, file];
    });
    expect(found.toSorted()).toEqual(all.toSorted());
  });
  return { property, reaches: ['refused', 'accepted'] };
}
