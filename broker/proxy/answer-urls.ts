/**
 * Addresses in the body of an answer to which clients go on sending their key (`answer_urls` of a manifest), such as one for an upload:
 * they lead through the door, or the client would show the agent's token to another host.
 */
import { memberTexts } from '../../json/member-texts.ts';
import { isBelow } from '../egress/redirect.ts';
import type { Method } from '../policy/facts.ts';
import { entryFor } from '../policy/operation-index.ts';
import type { PlatformRules } from '../policy/platform-rules.ts';
import type { Place } from './links.ts';

type Rules = Pick<PlatformRules, 'answerUrls' | 'baseUrls'>;

/** Changes the answer to a call; undefined: nothing in it is changed. `endpoint`: path and query. */
export function answerRewrite(
  rules: Rules,
  { method, endpoint }: { method: string; endpoint: string },
  place: Place,
): ((whole: Buffer) => Buffer) | undefined {
  const [path = ''] = endpoint.split('?', 1);
  const members = entryFor(rules.answerUrls, { method: method as Method, path })?.members;
  return members && ((whole) => rewriteMembers(whole, members, (address) => throughDoor(address, rules, place)));
}

/** What is no object of JSON, and numbers in one that is, stay as they are written. */
function rewriteMembers(whole: Buffer, names: readonly string[], rewrite: (address: string) => string): Buffer {
  const text = whole.toString('utf8');
  const isObject = isJsonObject(text);
  const members = isObject ? memberTexts(text) : undefined;
  // Which of two members of a name a client takes is not known.
  if (members === undefined) return isObject ? Buffer.from('{}') : whole;
  const written = [...members].map(([name, value]) => {
    const isNamed = names.includes(name) && value.startsWith('"');
    return `${JSON.stringify(name)}:${isNamed ? JSON.stringify(rewrite(JSON.parse(value) as string)) : value}`;
  });
  return Buffer.from(`{${written.join(',')}}`);
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Empty where it is of none of the platform's hosts: a client that has no address sends nothing. */
function throughDoor(address: string, { baseUrls }: Rules, { platform, door }: Place): string {
  const url = URL.parse(address);
  if (url === null) return '';
  const base = [...baseUrls.map(({ baseUrl }) => new URL(baseUrl)), platform].find((one) => isBelow(url, one));
  return base ? `${door}${url.pathname.slice(base.pathname.replace(/\/+$/, '').length)}${url.search}` : '';
}
