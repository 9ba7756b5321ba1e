/** Encodes an object as `multipart/form-data` (RFC 7578): texts, and files with a name. */
import { isBase64 } from '../policy/base64.ts';
import type { JsonObject, JsonValue } from '../policy/facts.ts';

/** A file member. `data`: text, or base64 when `encoding` is set. */
type FileMember = { filename: string; data: string; encoding?: 'base64'; content_type?: string };

const FILE_MEMBERS = new Set(['filename', 'data', 'encoding', 'content_type']);
/** RFC 9110 section 8.3.1. */
export const MEDIA_TYPE = /^[A-Za-z0-9!#$&^_.+-]{1,60}\/[A-Za-z0-9!#$&^_.+-]{1,80}(?:;[ -~]{1,200})?$/;
const WHAT =
  'a part is a text, a number, true or false, a file ({ "filename", "data", "encoding": "base64" }), or a list of those';

/** Returns why an object cannot be sent in parts, in a sentence for the agent; undefined when it can. */
export function partsProblem(object: JsonObject): string | undefined {
  for (const [name, value] of Object.entries(object)) {
    const problem = [value]
      .flat()
      .map(partProblem)
      .find((one) => one !== undefined);
    if (name === '') return 'a part has a name';
    if (problem !== undefined) return `${JSON.stringify(name.slice(0, 64).toWellFormed())}: ${problem}`;
  }
  return undefined;
}

function partProblem(value: JsonValue): string | undefined {
  if (value === null || Array.isArray(value)) return WHAT;
  if (typeof value !== 'object') return undefined;
  const { filename, data, encoding, content_type: type } = value;
  const isFile = typeof filename === 'string' && typeof data === 'string';
  if (!isFile || Object.keys(value).some((name) => !FILE_MEMBERS.has(name))) return WHAT;
  if (encoding !== undefined && encoding !== 'base64')
    return 'the encoding of a file is "base64", or left out for a text';
  if (encoding === 'base64' && !isBase64(data))
    return 'the data of the file is not base64 (RFC 4648 section 4, padded)';
  if (type === undefined) return undefined;
  return typeof type === 'string' && MEDIA_TYPE.test(type)
    ? undefined
    : 'content_type is a media type such as "text/csv"';
}

/**
 * Returns the heads of the parts as `encodeParts` writes them (WHATWG HTML, "multipart/form-data encoding algorithm"), between delimiters, without the
 * contents: what readers take names from.
 *
 * @param object one that `partsProblem` accepts
 */
export function headsOfParts(object: JsonObject): { type: string; bytes: Buffer } {
  const heads = Object.entries(object).flatMap(([name, values]) =>
    [values].flat().map((value) => {
      const named = `--x\r\nContent-Disposition: form-data; name="${escaped(name.replace(/\r?\n|\r/g, '\r\n'))}"`;
      if (typeof value !== 'object' || value === null) return `${named}\r\n\r\n\r\n`;
      const { filename, content_type: type = DEFAULT_TYPE } = value as FileMember;
      return `${named}; filename="${escaped(filename)}"\r\nContent-Type: ${type}\r\n\r\n\r\n`;
    }),
  );
  return { type: 'multipart/form-data; boundary=x', bytes: Buffer.from(`${heads.join('')}--x--\r\n`) };
}

const escaped = (name: string): string =>
  name.toWellFormed().replaceAll('\n', '%0A').replaceAll('\r', '%0D').replaceAll('"', '%22');

const DEFAULT_TYPE = 'application/octet-stream';

/** Encodes an object that `partsProblem` accepts. The boundary is different each time. */
export async function encodeParts(object: JsonObject): Promise<{ type: string; bytes: Buffer }> {
  const form = new FormData();
  for (const [name, value] of Object.entries(object))
    for (const one of [value].flat()) {
      if (typeof one !== 'object' || one === null) form.append(name, String(one));
      else {
        const { filename, data, encoding, content_type: type = DEFAULT_TYPE } = one as FileMember;
        form.append(name, new Blob([Buffer.from(data, encoding ?? 'utf8')], { type }), filename);
      }
    }
  const written = new Response(form);
  return { type: written.headers.get('content-type') ?? '', bytes: Buffer.from(await written.arrayBuffer()) };
}
