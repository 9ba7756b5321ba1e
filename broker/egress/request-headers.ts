/** Decides which of an agent's headers are forwarded (HD-01 to HD-09). */
import { foldName } from '../policy/names.ts';
import { isDropped } from './dropped-headers.ts';
import { isHeaderValue } from './outbound-request.ts';
import { matchesHeader } from './refused-headers.ts';

const MAX_HEADERS = 100;
const MAX_VALUE_BYTES = 8 * 1024;
/** RFC 9110 §5.6.2. */
const NAME = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,256}$/;
/** Names without aliases. Servers that fold names may read any other name as one of these (CGI: `X_A` is `X-A`). */
const PLAIN_NAME = /^[a-z0-9-]+$/;

export type FilteredHeaders =
  /** `headers`: a new map, names in lower case; `dropped`: the dropped names, in lower case, sorted. */
  | { ok: true; headers: Record<string, string>; dropped: string[] }
  /** A sentence for a 400 that names the header. */
  | { ok: false; error: string };

type PlatformHeaders = {
  withheld?: readonly string[];
  named?: readonly string[];
  defaults?: Readonly<Record<string, string>>;
};

/**
 * Filters the `headers` of an action. Forbidden names are dropped, because agents' libraries add them innocently; a malformed name or
 * value, a duplicate name (ignoring case) and more than 100 headers are errors. Values are visible ASCII with inner spaces, at most 8 KiB.
 * A name with characters other than letters, digits and `-` is dropped, because servers that fold names would read it as another one.
 *
 * @param platformHeaderNames names, folded by `foldName`, that the platform authenticates with, sets itself or forbids.
 * @param platform.withheld lower-case names, or prefixes followed by `*`, that are not sent on this platform.
 * @param platform.named names that are sent on this platform although they are dropped on others.
 * @param platform.defaults the platform's default headers, which an agent overrides by exactly that name; another spelling would send the
 * header twice.
 */
export function filterAgentHeaders(
  headers: Readonly<Record<string, unknown>>,
  platformHeaderNames: ReadonlySet<string>,
  { withheld = [], named = [], defaults = {} }: PlatformHeaders = {},
): FilteredHeaders {
  const refuse = (error: string) => ({ ok: false as const, error });
  const entries = Object.entries(headers);
  const overridable = new Map(Object.keys(defaults).map((name) => [foldName(name), name.toLowerCase()]));
  if (entries.length > MAX_HEADERS) return refuse(`headers: at most ${MAX_HEADERS} headers are allowed`);
  const kept = new Map<string, string>();
  const dropped = new Set<string>();
  let perHop: string[] = [];
  for (const [written, value] of entries) {
    const name = written.toLowerCase();
    if (!NAME.test(written) || name === '__proto__') return refuse(`headers: ${shown(written)} is not a header name`);
    if (kept.has(name) || dropped.has(name)) return refuse(`headers: ${name} is duplicated`);
    if (typeof value !== 'string') return refuse(`headers: the value of ${name} must be a string`);
    if (value.length > MAX_VALUE_BYTES)
      return refuse(`headers: the value of ${name} is longer than ${MAX_VALUE_BYTES} bytes`);
    if (!isHeaderValue(value)) {
      return refuse(`headers: the value of ${name} must be visible ASCII, without spaces at its ends`);
    }
    if (name === 'connection') perHop = value.toLowerCase().split(',');
    const isLeftOut = (one: string) => isDropped(one) && !named.includes(one);
    const isPlain = PLAIN_NAME.test(name) && !isLeftOut(name) && !matchesHeader(withheld, name);
    const folded = foldName(name);
    const overridden = overridable.get(folded);
    const isSent = overridden === undefined ? isPlain : overridden === name && !isLeftOut(withDashes(name));
    if (!isSent || platformHeaderNames.has(folded)) dropped.add(name);
    else kept.set(name, value);
  }
  // Headers named by Connection are hop-by-hop too. Only the agent's headers are here; the broker's are added later.
  for (const token of perHop) {
    const name = token.trim();
    if (kept.delete(name)) dropped.add(name);
  }
  return { ok: true, headers: Object.fromEntries(kept), dropped: [...dropped].sort() };
}

/** The name as read by servers that fold names. */
function withDashes(name: string): string {
  return name.replace(/[^a-z0-9]/g, '-');
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 40).toWellFormed());
}
