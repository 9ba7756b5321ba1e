/**
 * The recipient constraint of a grant: the addresses and ids that a call names, where the platform's manifest points at
 * them, must all be in the grant's allow-list. What cannot be read as one is not allowed.
 */
import { type Address, readAddress, readAddresses, readId, readIds, readMessageRecipients } from './addresses.ts';
import { type CallAsk, type JsonValue, readMembers, UnreadBody } from './facts.ts';
import { readGraphqlCall } from './graphql.ts';
import { argumentsOf } from './graphql-arguments.ts';
import { parameterNames } from './names.ts';
import { isGraphql, namesCall } from './operation.ts';
import type { PlatformRules, RecipientMatch, RecipientPointer, RecipientRule } from './platform-rules.ts';
import { pointerNames, walkPointer } from './pointer.ts';
import { spellingsOf } from './spelling.ts';

/** `unread`: because the body was not read. */
export type RecipientRefusal = { violating: string[]; detail: string; unread?: true };

/** Somebody whom a call names: the text, and the address or id when it is plainly one. */
type Recipient = { text: string; who: Address | string | undefined };

const MAX_NAMED = 50;
const MAX_NAMED_LENGTH = 320;

/**
 * Whether a call stays within an allow-list of addresses (`ann@x.example`), domains (`@x.example`, without its subdomains)
 * and ids (any other text, which matches itself alone); undefined when it does. An operation for which the manifest names
 * no recipients sends to nobody. One for which it does must name at least one, through a pointer that is not optional
 * where there is such a pointer: recipients that the platform takes from elsewhere (a stored draft, an existing event)
 * cannot be judged.
 */
export function refuseRecipients(
  allowed: readonly string[],
  rules: PlatformRules,
  call: CallAsk,
): RecipientRefusal | undefined {
  // Several rules may point into one body; the root fields of a GraphQL call have a subject each.
  const named = new Map<object, number>();
  const violating = new Set<string>();
  const isAllowed = allowList(allowed);
  const applying = recipientRulesFor(rules, call);
  if (call.body instanceof UnreadBody && applying.length > 0)
    return {
      violating: [],
      unread: true,
      detail: `the recipients of the call cannot be checked against the grant, because ${call.body.why}`,
    };
  for (const { pointers, subject } of applying) {
    for (const pointer of pointers) {
      const recipients = recipientsAt(subject, pointer);
      if (pointer.optional !== true) named.set(subject, (named.get(subject) ?? 0) + recipients.length);
      for (const { text, who } of recipients) {
        if (who === undefined || !isAllowed(who)) violating.add(shorten(nameOf(who) ?? text));
      }
    }
  }
  if (violating.size > 0) {
    return { violating: [...violating].slice(0, MAX_NAMED), detail: 'the grant does not allow these recipients' };
  }
  if (![...named.values()].includes(0)) return undefined;
  return { violating: [], detail: 'the call names no recipient that can be checked against the grant' };
}

/** Everybody whom a call names where the manifest points, as text, each once: for people to read. */
export function namedRecipients(rules: PlatformRules, call: CallAsk): string[] {
  const named = recipientRulesFor(rules, call).flatMap(({ pointers, subject }) =>
    pointers
      .filter(({ format }) => format !== 'text')
      .flatMap((pointer) => recipientsAt(subject, pointer).map(({ text }) => text)),
  );
  return [...new Set(named)];
}

/**
 * Everybody whom a call names where the manifest points, each once, and written in one way however the call writes it: to be compared
 * with whom other calls name. `isClear` false: somebody is named who cannot be told, or nobody where somebody must be.
 */
export function recipientsOf(rules: PlatformRules, call: CallAsk): { named: readonly string[]; isClear: boolean } {
  const applying = recipientRulesFor(rules, call);
  if (applying.length === 0) return NOBODY;
  const named = new Set<string>();
  let isClear = !(call.body instanceof UnreadBody);
  const counted = new Map<object, number>();
  for (const { pointers, subject } of applying)
    for (const pointer of pointers) {
      const recipients = recipientsAt(subject, pointer);
      if (pointer.optional !== true) counted.set(subject, (counted.get(subject) ?? 0) + recipients.length);
      for (const { who } of recipients) {
        const name = nameOf(who);
        if (name === undefined) isClear = false;
        else named.add(name);
      }
    }
  return { named: [...named], isClear: isClear && ![...counted.values()].includes(0) };
}

const NOBODY = Object.freeze({ named: Object.freeze([]), isClear: true });

/** The entries that lie in both lists: `@x.example` and `ann@x.example` have the address in common. */
export function intersectRecipients(a: readonly string[], b: readonly string[]): string[] {
  const within = (entry: string, list: readonly string[]) => list.some((other) => entryCovers(other, entry));
  return [...new Set([...a.filter((entry) => within(entry, b)), ...b.filter((entry) => within(entry, a))])];
}

/** What an entry of an allow-list is: an address, a domain after `@`, or an id; undefined when it can match nothing. */
export function recipientEntryKind(entry: string): 'address' | 'domain' | 'id' | undefined {
  if (!entry.includes('@')) return readId(entry) === undefined ? undefined : 'id';
  if (entry.startsWith('@')) return readAddress(`x${entry}`) && 'domain';
  return readAddress(entry) && 'address';
}

/** Whether a list has somebody: an id is covered by the very same text, an address by itself and by its domain. */
function allowList(entries: readonly string[]): (who: Address | string) => boolean {
  const texts = new Set(entries);
  const domains = new Set<string>();
  const addresses = new Set<string>();
  for (const entry of entries) {
    if (entry.startsWith('@')) domains.add(entry.slice(1).toLowerCase());
    else {
      const name = nameOf(readAddress(entry));
      if (name !== undefined) addresses.add(name);
    }
  }
  return (who) =>
    typeof who === 'string' ? texts.has(who) : domains.has(who.domain) || addresses.has(nameOf(who) ?? '');
}

function entryCovers(outer: string, inner: string): boolean {
  if (inner.startsWith('@')) return outer.startsWith('@') && outer.toLowerCase() === inner.toLowerCase();
  const who = readAddress(inner) ?? readId(inner);
  return who !== undefined && allowList([outer])(who);
}

/** Whom a text names, by the format of its pointer. */
function readRecipients(text: string, format: RecipientPointer['format']): Recipient[] {
  switch (format) {
    case 'id':
      return text === '' ? [] : [{ text, who: readId(text) }];
    case 'ids':
      return readIds(text).map((part) => ({ text: part, who: readId(part) }));
    case 'rfc822-base64url': {
      const mailboxes = readMessageRecipients(text) ?? [{ text: 'a message that cannot be read', address: undefined }];
      return mailboxes.map(({ text: part, address }) => ({ text: part, who: address }));
    }
    case 'text':
      return text === '' ? [] : [{ text, who: undefined }];
    case undefined:
      return readAddresses(text).map(({ text: part, address }) => ({ text: part, who: address }));
  }
}

/**
 * The recipients at a JSON pointer (RFC 6901, with `*` for each member of a list or object). Under an optional pointer
 * nobody is named by what is absent, null, or an empty text or list. Anything else names somebody: when it cannot be said
 * whom (a list element without the member, a text without an address), it counts as a recipient that is not allowed.
 */
function recipientsAt(subject: JsonValue, { pointer, format, optional }: RecipientPointer): Recipient[] {
  const found: Recipient[] = [];
  const unclear = (value: JsonValue) => found.push({ text: JSON.stringify(value), who: undefined });
  walkPointer(subject, pointerNames(pointer), {
    value: (value, listed) => {
      const read = typeof value === 'string' ? readRecipients(value, format) : [];
      for (const recipient of read) found.push(recipient);
      if (typeof value !== 'string' || (optional && read.length === 0 && (listed || value !== ''))) unclear(value);
    },
    deadEnd: (value) => {
      if (optional) unclear(value);
    },
  });
  return found;
}

/** The bare address, its domain in lower case, or the id; what is plainly neither is told as it stands. */
function nameOf(who: Address | string | undefined): string | undefined {
  return typeof who === 'object' ? `${who.local}@${who.domain}` : who;
}

function shorten(text: string): string {
  return text.length > MAX_NAMED_LENGTH ? `${text.slice(0, MAX_NAMED_LENGTH)}…` : text;
}

/**
 * The recipient rules that a call falls under, each with the value its pointers point into: the body, and for GraphQL
 * the root field's arguments. Where an API also takes the same member in the query string (Slack does), that is one more
 * match. A call that `classify` refuses has none. Of a body that was not read there are no members.
 */
export function recipientRulesFor(rules: PlatformRules, call: CallAsk): readonly RecipientMatch[] {
  if (rules.recipients.length === 0) return [];
  if (isGraphql(rules, call)) return graphqlRecipients(rules, call);
  const body = readMembers(call);
  const spellings = spellingsOf(call.path);
  return rules.recipients
    .filter(({ operation }) => namesCall(operation, rules, call, spellings))
    .flatMap((rule) => [{ ...rule, subject: body }, ...queryRecipients(rule, call.query)]);
}

function graphqlRecipients(rules: PlatformRules, call: CallAsk): RecipientMatch[] {
  const read = readGraphqlCall(readMembers(call));
  if (read.kind !== 'read') return [];
  return rules.recipients.flatMap((rule) => {
    const { operation } = rule;
    if (operation.kind !== 'graphql' || operation.operation !== read.operation) return [];
    const roots = read.roots.filter((root) => operation.field.matches(root.name.value));
    return roots.map((root) => ({ ...rule, subject: argumentsOf(root, read.definition, read.variables) }));
  });
}

/** `?channel=C1` and `?to[]=a` beside a body that also names recipients: each value is judged, as it stands. */
function queryRecipients(rule: RecipientRule, query: string): RecipientMatch[] {
  if (query === '') return [];
  const pairs = [...new URLSearchParams(query)];
  // Some servers take `;` for `&` (HTML 4.01, B.2.2): both readings are judged.
  if (query.includes(';')) pairs.push(...new URLSearchParams(query.replaceAll(';', '&')));
  return pairs.flatMap(([name, value]) => {
    // `to.email` is a member of `to` to some readers, and one name to others.
    const [root = ''] = name.split('.', 1);
    const names = [...parameterNames(name), ...parameterNames(root)];
    const here = rule.pointers.filter(({ pointer }) => names.includes(pointerNames(pointer)[0] ?? ''));
    if (here.length === 0) return [];
    const [member = ''] = name.split(/[[.]/, 1);
    const place = `/${member.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const pointers = here.map((pointer) => ({ ...pointer, pointer: place }));
    return [{ ...rule, pointers, subject: { [member]: value } }];
  });
}
