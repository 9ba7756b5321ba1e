/** The names of a form's fields, as any reader may find them: also of one that is not read, because two readers may differ. */
import { namesMethod } from '../policy/endpoint.ts';

/** What stands before the content of a part: more is none of a client's. */
const MOST_HEAD = 16 * 1024;
const BOUNDARY = /\bboundary\s*=\s*(?:"([^"]{1,200})"|([^;\s]{1,200}))/i;
const NAME = /;\s*name(\*?)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/gi;

/** A field by which some servers take another method than the one that was judged (Rack, Laravel); undefined: there is none. */
export function methodField(type: string, bytes: Buffer): string | undefined {
  const [essence = ''] = type.toLowerCase().split(';', 1);
  if (essence.trim() === 'application/x-www-form-urlencoded')
    return [...new URLSearchParams(bytes.toString('utf8')).keys()].find(namesMethod);
  if (!essence.trim().startsWith('multipart/')) return undefined;
  const [, quoted, plain] = BOUNDARY.exec(type) ?? [];
  const boundary = quoted ?? plain;
  return boundary === undefined ? undefined : partNames(bytes.toString('latin1'), boundary).find(namesMethod);
}

/** RFC 7578 section 4.2, and what readers make of it that are less strict: bare line ends, escapes, folded lines, names after RFC 8187. */
function partNames(text: string, boundary: string): string[] {
  const names: string[] = [];
  for (let at = text.indexOf(`--${boundary}`); at >= 0; at = text.indexOf(`--${boundary}`, at + 1)) {
    const from = at + 2 + boundary.length;
    const [head = ''] = text.slice(from, from + MOST_HEAD).split(/\r?\n\r?\n/, 1);
    const unfolded = head.replaceAll(/\r?\n[ \t]+/g, ' ');
    for (const [, extended = '', quoted, plain = ''] of unfolded.matchAll(NAME)) {
      const name = (quoted ?? plain).replaceAll(/\\(.)/g, '$1');
      names.push(name, decoded(extended === '' ? name : name.replace(/^[^']*'[^']*'/, '')));
    }
  }
  return names;
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
