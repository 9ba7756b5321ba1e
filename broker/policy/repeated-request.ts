/** Compares a request with that of a standing approval: equal in every member, except for those that may differ. Pure. */
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { present } from '../runtime/present.ts';
import { sameJson } from './same-json.ts';
import type { Free, Written, WrittenBody } from './standing-terms.ts';

/** Clients change these headers from call to call, and no platform behaves differently because of them. */
const NOT_COUNTED = new Set(['idempotency-key', 'user-agent', 'x-request-id', 'traceparent', 'tracestate']);

/** Permitted values of a free segment of a path and of a free query parameter: none that a server may read as more than one value. */
const PLAIN_SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9._~-]*$/;
const PLAIN_VALUE = /^(?:[A-Za-z0-9._~*+-]|%(?!00|26|3[Bb])[0-9A-Fa-f]{2})+$/;
/** A whole number in the one form that all servers read alike. */
const WHOLE = /^[1-9][0-9]{0,14}$/;

/** @param held the request of the call that was approved */
export function isLike(held: Written, written: Written, free: readonly Free[]): boolean {
  return (
    held.door === written.door &&
    held.method === written.method &&
    samePath(held.path, written.path, free) &&
    sameQuery(held.query, written.query, free) &&
    sameHeaders(held.headers, written.headers) &&
    sameBody(held.body, written.body, free)
  );
}

/** Whether a value may replace another: of the same type, and within the bound if it is a number. */
function mayStand(held: JsonValue | undefined, value: JsonValue | undefined, { atMost }: Free): boolean {
  if (held === undefined || value === undefined || kindOf(held) !== kindOf(value)) return false;
  if (atMost === undefined) return kindOf(held) !== 'number';
  const number = amountOf(value);
  return number !== undefined && number <= atMost;
}

/** Returns a number above 0, also from a text that all servers read as the same number; undefined for anything else. */
export function amountOf(value: JsonValue): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) && value > 0 ? value : undefined;
  return typeof value === 'string' && WHOLE.test(value) ? Number(value) : undefined;
}

const kindOf = (value: JsonValue): string => (value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value);

function samePath(held: string, path: string, free: readonly Free[]): boolean {
  if (held === path) return true;
  const [before, now] = [held.slice(1).split('/'), path.slice(1).split('/')];
  return before.length === now.length && before.every((one, i) => one === now[i] || isFreeSegment(i, now[i], free));
}

const isFreeSegment = (segment: number, value = '', free: readonly Free[]): boolean =>
  PLAIN_SEGMENT.test(value) && free.some(({ place }) => place.in === 'path' && place.segment === segment);

function sameQuery(held: string, query: string, free: readonly Free[]): boolean {
  if (held === query) return true;
  const [before, now] = [held.split('&'), query.split('&')];
  if (before.length !== now.length) return false;
  return before.every((pair, i) => {
    const other = present(now[i], 'pair');
    if (pair === other) return true;
    const [name, value] = pairOf(pair);
    const [otherName, otherValue] = pairOf(other);
    const found = free.find(({ place }) => place.in === 'query' && place.name === name);
    if (found === undefined || name !== otherName) return false;
    const isOnce = before.filter((one) => pairOf(one)[0] === name).length === 1;
    return isOnce && PLAIN_VALUE.test(otherValue) && mayStand(value, otherValue, found);
  });
}

function pairOf(pair: string): [name: string, value: string] {
  const at = pair.indexOf('=');
  return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
}

function sameHeaders(held: Written['headers'], headers: Written['headers']): boolean {
  const counted = (all: Written['headers']) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !NOT_COUNTED.has(name)));
  return sameJson(counted(held), counted(headers));
}

function sameBody(held: WrittenBody, body: WrittenBody, free: readonly Free[]): boolean {
  if (held.kind === 'none') return body.kind === 'none';
  if (held.kind === 'bytes')
    return body.kind === 'bytes' && held.base64 === body.base64 && sameJson(held.headers, body.headers);
  if (held.kind !== 'members' || body.kind !== 'members') return false;
  if (held.as !== body.as || !sameJson(held.headers, body.headers)) return false;
  return sameMembers(held.value, body.value, [], free);
}

function sameMembers(held: JsonObject, now: JsonObject, at: readonly string[], free: readonly Free[]): boolean {
  const names = Object.keys(held);
  if (names.length !== Object.keys(now).length) return false;
  return names.every((name) => {
    if (!Object.hasOwn(now, name)) return false;
    const [before, value] = [held[name], now[name]];
    const here = [...at, name];
    const found = free.find(({ place }) => place.in === 'body' && isAt(place.names, here));
    if (found !== undefined) return mayStand(before, value, found);
    const isAbove = free.some(({ place }) => place.in === 'body' && isAt(place.names.slice(0, here.length), here));
    if (isAbove && isMembers(before) && isMembers(value)) return sameMembers(before, value, here, free);
    return sameJson(before, value);
  });
}

const isAt = (names: readonly string[], here: readonly string[]): boolean =>
  names.length === here.length && names.every((name, i) => name === here[i]);

const isMembers = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
