/** JSON as in answers of public APIs: issues, commits, mails, search results, with escapes, markup, encoded files and hashes. */
import { makeRandom, type Random } from './random.ts';

const WORDS =
  `the quick release of broker version fixes crash on login when token expires café naïve 東京 “quoted” R&D 50% off
  <b>bold</b> <a href="/x?a=1&b=2">link</a> C:\\temp\\new path/to/file.ts 100%25 a+b=c \\u0041 &amp; &lt;p&gt; don't e.g. i.e.`.split(
    /\s+/,
  );

/** Yields JSON documents of some kilobytes, deterministic by seed. */
export function* publicJson(seed: number, bytes: number): Generator<Buffer> {
  const random = makeRandom(seed);
  const kinds = [issues, file, commits, mail, search];
  for (let made = 0; made < bytes; ) {
    const value = pick(random, kinds)(random);
    const document = Buffer.from(random() < 0.2 ? JSON.stringify(value, null, 2) : JSON.stringify(value));
    made += document.length;
    yield document;
  }
}

function issues(random: Random): object {
  return times(random, 20, () => ({
    id: Math.floor(random() * 1e10),
    node_id: base64(random, 24),
    url: `https://api.example/repos/acme/app/issues/${Math.floor(random() * 1e5)}?per_page=100&q=${encodeURIComponent(prose(random, 4))}`,
    title: prose(random, 8),
    body: prose(random, 120).replaceAll('. ', '.\r\n'),
    body_html: `<p>${prose(random, 60).replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll("'", '&#39;')}</p>`,
    sha: hex(random, 20),
  }));
}

function file(random: Random): object {
  const isText = random() < 0.5;
  const content = isText ? Buffer.from(prose(random, 900)) : bytesOf(random, 8_000);
  return {
    encoding: 'base64',
    size: content.length,
    content: content.toString('base64').replace(/.{60}/g, '$&\n'),
    sha: hex(random, 20),
  };
}

function commits(random: Random): object {
  const patch = () => `@@ -1,7 +1,9 @@\n-${prose(random, 12)}\n+${prose(random, 12)}\n \t"escaped": "\\u00e9\\n"`;
  return times(random, 15, () => ({ sha: hex(random, 20), commit: { message: prose(random, 20), patch: patch() } }));
}

/** The format of mail APIs: base64url of a message whose attachment is base64 itself. */
function mail(random: Random): object {
  const attachment = bytesOf(random, 2_000).toString('base64').replace(/.{76}/g, '$&\r\n');
  const message = `Subject: ${prose(random, 5)}\r\nContent-Transfer-Encoding: base64\r\n\r\n${attachment}`;
  return { id: hex(random, 8), snippet: prose(random, 20), raw: Buffer.from(message).toString('base64url') };
}

/** JSON in a JSON string, as event logs store requests. */
function search(random: Random): object {
  return {
    total: 3,
    events: times(random, 6, () => ({
      payload: JSON.stringify({ request: JSON.stringify(issues(random)).slice(0, 900) }),
    })),
  };
}

function prose(random: Random, words: number): string {
  return times(random, words, () => pick(random, WORDS)).join(' ');
}

function hex(random: Random, bytes: number): string {
  return bytesOf(random, bytes).toString('hex');
}

function base64(random: Random, bytes: number): string {
  return bytesOf(random, bytes).toString('base64');
}

function bytesOf(random: Random, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let i = 0; i < length; i++) bytes[i] = random() * 256;
  return bytes;
}

function pick<T>(random: Random, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)]!;
}

function times<T>(random: Random, most: number, make: () => T): T[] {
  return Array.from({ length: 1 + Math.floor(random() * most) }, make);
}
