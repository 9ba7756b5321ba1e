/**
 * Rewrites URLs in the body of an answer to which clients send their key (`answer_urls` of a manifest), such as an upload URL, so that they
 * lead through /proxy: otherwise the client would send the agent's token to another host.
 */
import { itemTexts, memberTexts } from '../../json/member-texts.ts';
import { isBelow } from '../egress/redirect.ts';
import type { Method } from '../policy/facts.ts';
import { entryFor } from '../policy/operation-index.ts';
import type { PlatformRules } from '../policy/platform-rules.ts';
import type { Place } from './links.ts';

type Rules = Pick<PlatformRules, 'answerUrls' | 'baseUrls'>;

/** Returns the function that rewrites the answer of a call; undefined when nothing is rewritten. `endpoint`: path and query. */
export function answerRewrite(
  rules: Rules,
  { method, endpoint }: { method: string; endpoint: string },
  place: Place,
): ((whole: Buffer) => Buffer) | undefined {
  const [path = ''] = endpoint.split('?', 1);
  const members = entryFor(rules.answerUrls, { method: method as Method, path })?.members;
  return members && ((whole) => rewriteMembers(whole, members, (address) => throughProxy(address, rules, place)));
}

/** Rewrites members of a JSON object, or of each object in a JSON list. Anything else stays unchanged, and so do numbers in the objects. */
function rewriteMembers(whole: Buffer, names: readonly string[], rewrite: (address: string) => string): Buffer {
  const text = whole.toString('utf8');
  const value = parsed(text);
  if (typeof value !== 'object' || value === null) return whole;
  const one = (object: string) => rewriteObject(object, names, rewrite);
  return Buffer.from(
    Array.isArray(value)
      ? `[${itemTexts(text)
          .map((item) => (item.startsWith('{') ? one(item) : item))
          .join(',')}]`
      : one(text),
  );
}

function rewriteObject(text: string, names: readonly string[], rewrite: (address: string) => string): string {
  const members = memberTexts(text);
  // With duplicate names it is unknown which one a client uses.
  if (members === undefined) return '{}';
  const written = [...members].map(([name, value]) => {
    const isNamed = names.includes(name) && value.startsWith('"');
    return `${JSON.stringify(name)}:${isNamed ? JSON.stringify(rewrite(JSON.parse(value) as string)) : value}`;
  });
  return `{${written.join(',')}}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Empty for a URL of none of the platform's hosts: a client without a URL sends nothing. `address`: a URL, or a template of one (RFC 6570) with
 * expressions at its end only, as GitHub's `…/assets{?name,label}`.
 */
function throughProxy(address: string, { baseUrls }: Rules, { platform, proxyUrl }: Place): string {
  const [, before = '', expressions = ''] = /^([^{]*)((?:\{[^{}]*\})*)$/s.exec(address) ?? [];
  const url = URL.parse(before);
  if (url === null) return '';
  const base = [...baseUrls.map(({ baseUrl }) => new URL(baseUrl)), platform].find((one) => isBelow(url, one));
  return base
    ? `${proxyUrl}${url.pathname.slice(base.pathname.replace(/\/+$/, '').length)}${url.search}${expressions}`
    : '';
}
