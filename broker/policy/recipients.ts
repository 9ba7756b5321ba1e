/**
 * The recipient constraint of a grant: the addresses and ids that a call names, at the pointers of the platform's manifest, must all be in the grant's
 * allow-list. A value that cannot be parsed as an address or id is not allowed.
 */
import { type Address, readAddress, readAddresses, readId, readIds, readMessageRecipients } from './addresses.ts';
import { type CallAsk, type JsonValue, readMembers, UnreadBody } from './facts.ts';
import { argumentsOf } from './graphql/arguments.ts';
import { readGraphqlCall } from './graphql/call.ts';
import { parameterNames } from './names.ts';
import { isGraphql, namesCall } from './operation.ts';
import type { PlatformRules, RecipientMatch, RecipientPointer, RecipientRule } from './platform-rules.ts';
import { pointerNames, walkPointer } from './pointer.ts';
import { spellingsOf } from './spelling.ts';

/** `unread`: the call is refused because the body was not read. */
export type RecipientRefusal = { violating: string[]; detail: string; unread?: true };

/** A recipient that a call names: the text, and its address or id; undefined when it is not a plain one. */
type Recipient = { text: string; who: Address | string | undefined };

const MAX_NAMED = 50;
const MAX_NAMED_LENGTH = 320;

/**
 * Checks that a call stays within an allow-list of addresses (`ann@x.example`), domains (`@x.example`, without its subdomains) and ids (any other text, which
 * matches only itself); undefined when it does. An operation for which the manifest has no recipient rule sends to nobody. An operation with a rule must name
 * at least one recipient, through a pointer that is not optional if there is such a pointer: recipients that the platform takes from elsewhere (a stored
 * draft, an existing event) cannot be checked.
 */
export function refuseRecipients(
  allowed: readonly string[],
  rules: PlatformRules,
  call: CallAsk,
): RecipientRefusal | undefined {
  // Several rules may point into one body; each root field of a GraphQL call has its own subject.
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

/** Returns the recipients that a call names, as text for people to read, each once. */
export function namedRecipients(rules: PlatformRules, call: CallAsk): string[] {
  const named = recipientRulesFor(rules, call).flatMap(({ pointers, subject }) =>
    pointers
      .filter(({ format }) => format !== 'text')
      .flatMap((pointer) => recipientsAt(subject, pointer).map(({ text }) => text)),
  );
  return [...new Set(named)];
}

/**
 * Returns the recipients that a call names, each once and in normalised form, for comparison with those of other calls. `isClear` false: a recipient cannot
 * be parsed, or a required one is missing.
 */
export function recipientsOf(rules: PlatformRules, call: CallAsk): { named: readonly string[]; isClear: boolean } {
  const applying = recipientRulesFor(rules, call);
  if (applying.length === 0) return NO_RECIPIENT;
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

const NO_RECIPIENT = Object.freeze({ named: Object.freeze([]), isClear: true });

/** Returns the entries covered by both lists: `@x.example` and `ann@x.example` have the address in common. */
export function intersectRecipients(a: readonly string[], b: readonly string[]): string[] {
  const within = (entry: string, list: readonly string[]) => list.some((other) => entryCovers(other, entry));
  return [...new Set([...a.filter((entry) => within(entry, b)), ...b.filter((entry) => within(entry, a))])];
}

/**
 * Returns the kind of an entry of an allow-list: an address, a domain after `@`, or an id; undefined when it can match nothing. An address may contain `*`,
 * but whoever writes `*@x.example` in an allow-list means a pattern.
 */
export function recipientEntryKind(entry: string): 'address' | 'domain' | 'id' | undefined {
  if (entry.includes('*')) return undefined;
  if (!entry.includes('@')) return readId(entry) === undefined ? undefined : 'id';
  if (entry.startsWith('@')) return readAddress(`x${entry}`) && 'domain';
  return readAddress(entry) && 'address';
}

/** Returns a function that checks whether a list covers a recipient: an id by the identical text, an address by itself or by its domain. */
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

/** Parses the recipients in a text, by the format of its pointer. */
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
 * Returns the recipients at a JSON pointer (RFC 6901, with `*` for each member of a list or object). Under an optional pointer, an absent value, null, and an
 * empty text or list name nobody. Anything else names somebody: a value that cannot be parsed (a list element without the member, a text without an address)
 * counts as a recipient that is not allowed.
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

/** Returns the bare address, its domain in lower case, or the id; undefined for a recipient that could not be parsed. */
function nameOf(who: Address | string | undefined): string | undefined {
  return typeof who === 'object' ? `${who.local}@${who.domain}` : who;
}

function shorten(text: string): string {
  return text.length > MAX_NAMED_LENGTH ? `${text.slice(0, MAX_NAMED_LENGTH)}…` : text;
}

/**
 * Returns the recipient rules that apply to a call, each with the value into which its pointers point: the body, and for GraphQL the root field's arguments.
 * Where an API also accepts the same member in the query string (Slack does), that is an additional match. A call that `classify` refuses has none. An unread
 * body has no members.
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

/** Handles `?channel=C1` and `?to[]=a` in addition to recipients in the body: each value is checked as it stands. */
function queryRecipients(rule: RecipientRule, query: string): RecipientMatch[] {
  if (query === '') return [];
  const pairs = [...new URLSearchParams(query)];
  // Some servers treat `;` as `&` (HTML 4.01, B.2.2): both readings are checked.
  if (query.includes(';')) pairs.push(...new URLSearchParams(query.replaceAll(';', '&')));
  return pairs.flatMap(([name, value]) => {
    // `to.email` is a member of `to` on some servers, and a single name on others.
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
