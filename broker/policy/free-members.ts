/** Members of operations in which calls under a standing approval may differ: from a manifest's `free`. */
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import type { CallAsk } from './call-ask.ts';
import { entryFor } from './operation-index.ts';
import type { FreeRule, FreeRuleSource, Operation, PlatformRules } from './platform-rules.ts';
import { amountOf } from './repeated-request.ts';
import type { Free, FreePlace, Written } from './standing-terms.ts';
import { toolOf } from './tool.ts';

const BODY = /^(?:\/(?:[^~/*]|~[01])+)+$/;
const QUERY = /^\?([A-Za-z0-9._~[\]-]{1,100})$/;
const PATH = /^[1-9][0-9]?$/;

/** A member that the owner may release, with its value in the held call. `isAmount`: only as a number with an upper bound. */
export type Offered = Free & { value: JsonValue; isAmount: boolean };

/** @throws Error with a sentence that says what to write instead */
export function compileFreeRule(operation: Operation, members: readonly FreeRuleSource[]): FreeRule {
  const { source } = operation;
  if (operation.kind === 'graphql')
    throw new Error(`"${source}": the document of a GraphQL call determines the whole call, so none of it is free`);
  return {
    operation,
    members: members.map((one) => {
      const { member, at_most = false } = typeof one === 'string' ? { member: one } : one;
      return { member, place: placeOf(operation, member), isAmount: at_most };
    }),
  };
}

function placeOf(operation: Operation, member: string): FreePlace {
  const refuse = (why: string): never => {
    throw new Error(`"${operation.source}": "${member}" ${why}`);
  };
  if (BODY.test(member)) {
    if (operation.kind === 'http' && operation.method === 'GET') return refuse('is of a body, and a GET has none');
    const names = member.slice(1).split('/');
    return { in: 'body', names: names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')) };
  }
  if (operation.kind !== 'http') return refuse('is no argument of a tool; write "/text"');
  const name = QUERY.exec(member)?.[1];
  if (name !== undefined) return { in: 'query', name };
  if (!PATH.test(member))
    return refuse('is no member; write "/text" of the body, "?q" of the query, or "1" for the first * of the path');
  const segments = operation.path.source.slice(1).split('/');
  const stars = segments.flatMap((segment, i) => (segment === '*' ? [i] : []));
  const segment = stars[Number(member) - 1];
  return segment === undefined ? refuse(`is not in the path, which has ${stars.length} *`) : { in: 'path', segment };
}

/** Returns the members of a call that the owner may release: those that the manifest lists for its operation and that the call has. */
export function offeredMembers(
  rules: PlatformRules,
  call: Pick<CallAsk, 'method' | 'path'>,
  written: Written,
): Offered[] {
  return (ruleFor(rules, call)?.members ?? []).flatMap(({ member, place, isAmount }): Offered[] => {
    const value = valueAt(place, written);
    if (value === undefined) return [];
    if (!isAmount) return typeof value === 'number' ? [] : [{ member, place, value, isAmount }];
    const atMost = amountOf(value);
    return atMost === undefined ? [] : [{ member, place, value, isAmount, atMost }];
  });
}

function ruleFor(rules: PlatformRules, call: Pick<CallAsk, 'method' | 'path'>): FreeRule | undefined {
  if (rules.kind !== 'mcp') return entryFor(rules.free, call);
  const tool = toolOf(call.path);
  return rules.free.find(({ operation }) => operation.kind === 'tool' && operation.name.matches(tool ?? ''));
}

function valueAt(place: FreePlace, { path, query, body }: Written): JsonValue | undefined {
  if (place.in === 'path') return path.slice(1).split('/')[place.segment];
  if (place.in === 'query') {
    const found = query.split('&').filter((pair) => pair.startsWith(`${place.name}=`));
    return found.length === 1 ? found[0]?.slice(place.name.length + 1) : undefined;
  }
  if (body.kind !== 'members') return undefined;
  let value: JsonValue | undefined = body.value;
  for (const name of place.names) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    value = Object.hasOwn(value, name) ? (value as JsonObject)[name] : undefined;
  }
  return value;
}
