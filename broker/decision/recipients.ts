/**
 * The recipient constraint of a grant: the addresses that a call names, where the platform's manifest points at them,
 * must all be in the grant's allow-list. What cannot be read as an address is not allowed.
 */
import { type Address, type Mailbox, readAddress, readAddresses, readMessageRecipients } from './addresses.ts';
import type { CallAsk, JsonValue } from './facts.ts';
import { type PlatformRules, type RecipientPointer, recipientRulesFor } from './operation.ts';

export type RecipientRefusal = { violating: string[]; detail: string };

const MAX_NAMED = 50;
const MAX_NAMED_LENGTH = 320;

/**
 * Whether a call stays within an allow-list of addresses (`ann@x.example`) and domains (`@x.example`, without its
 * subdomains); undefined when it does. An operation for which the manifest names no recipients sends to nobody. One for
 * which it does must name at least one: recipients that the platform takes from elsewhere (a stored draft, an existing
 * event) cannot be judged.
 */
export function refuseRecipients(
  allowed: readonly string[],
  rules: PlatformRules,
  call: CallAsk,
): RecipientRefusal | undefined {
  const matches = recipientRulesFor(rules, call);
  if (matches.length === 0) return undefined;
  // Several rules may point into one body; the root fields of a GraphQL call have a subject each.
  const named = new Map<object, number>();
  const violating = new Set<string>();
  for (const { pointers, subject } of matches) {
    const mailboxes = pointers.flatMap((pointer) => recipientsAt(subject, pointer));
    named.set(subject, (named.get(subject) ?? 0) + mailboxes.length);
    for (const { text, address } of mailboxes) {
      if (address === undefined || !allowed.some((entry) => covers(entry, address))) violating.add(shorten(text));
    }
  }
  if (violating.size > 0) {
    return { violating: [...violating].slice(0, MAX_NAMED), detail: 'the grant does not allow these recipients' };
  }
  if (![...named.values()].includes(0)) return undefined;
  return { violating: [], detail: 'the call names no recipient that can be checked against the grant' };
}

/** The entries that lie in both lists: `@x.example` and `ann@x.example` have the address in common. */
export function intersectRecipients(a: readonly string[], b: readonly string[]): string[] {
  const within = (entry: string, list: readonly string[]) => list.some((other) => entryCovers(other, entry));
  return [...new Set([...a.filter((entry) => within(entry, b)), ...b.filter((entry) => within(entry, a))])];
}

/** Whether an entry of an allow-list is one that can match: an address, or a domain after `@`. */
export function isRecipientEntry(entry: string): boolean {
  return readAddress(entry.startsWith('@') ? `x${entry}` : entry) !== undefined;
}

function covers(entry: string, { local, domain }: Address): boolean {
  if (entry.startsWith('@')) return entry.slice(1).toLowerCase() === domain;
  const address = readAddress(entry);
  return address !== undefined && address.domain === domain && address.local === local;
}

function entryCovers(outer: string, inner: string): boolean {
  if (!inner.startsWith('@')) {
    const address = readAddress(inner);
    return address !== undefined && covers(outer, address);
  }
  return outer.startsWith('@') && outer.toLowerCase() === inner.toLowerCase();
}

/** The mailboxes at a JSON pointer (RFC 6901, with `*` for each member of a list or object). */
function recipientsAt(subject: JsonValue, { pointer, format }: RecipientPointer): Mailbox[] {
  const found: Mailbox[] = [];
  const names = pointer.slice(1).split('/');
  walk(
    subject,
    names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')),
    0,
    (value) => {
      if (typeof value !== 'string') found.push({ text: JSON.stringify(value), address: undefined });
      else if (format === undefined) found.push(...readAddresses(value));
      else
        found.push(
          ...(readMessageRecipients(value) ?? [{ text: 'a message that cannot be read', address: undefined }]),
        );
    },
  );
  return found;
}

/**
 * Walks to the values under a pointer. Where the call has another shape than the pointer (one text for a list, a list for
 * one member), the platform may take that too, and so do we. Member names match in any case, as some servers' do.
 */
function walk(
  value: JsonValue | undefined,
  names: readonly string[],
  at: number,
  leaf: (value: JsonValue) => void,
): void {
  if (value === undefined || value === null) return;
  const name = names[at];
  if (Array.isArray(value)) {
    const past = name === '*' || (name !== undefined && /^[0-9]+$/.test(name)) ? at + 1 : at;
    for (const member of value) walk(member, names, past, leaf);
  } else if (typeof value !== 'object' || name === undefined) {
    leaf(value);
  } else {
    for (const [member, inner] of Object.entries(value)) {
      if (name === '*' || member.toLowerCase() === name.toLowerCase()) walk(inner, names, at + 1, leaf);
    }
  }
}

function shorten(text: string): string {
  return text.length > MAX_NAMED_LENGTH ? `${text.slice(0, MAX_NAMED_LENGTH)}…` : text;
}
