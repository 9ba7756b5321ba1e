import type { RefusalLog } from '../log/refusals.ts';
import { shareOf } from '../runtime/memory-share.ts';
import { type SharedLimit, SharedUse, withReserve } from '../runtime/shared-limit.ts';
import type { WindowCounts } from '../runtime/window-counts.ts';

/**
 * A number of requests per minute, counted per agent, per agent together with its children, per client address, or per site (siteOf). `counts:
 * 'failures'`: only requests that are answered with a 4xx count, and only they are refused, so that one client at an address cannot keep others there
 * from using a valid link, token or passkey.
 */
export type Limit = { name: string; perMinute: number; per: 'agent' | 'family' | 'site' } | AddressLimit;
export type AddressLimit = { name: string; perMinute: number; per: 'address'; counts?: 'failures' };

/** `perMinute`: the effective limit, including the factor. */
export type LimitResult = {
  allowed: boolean;
  headers: Record<string, string>;
  retryAfterSeconds: number;
  perMinute: number;
};

/**
 * Limits of concurrent answers: per client address of an organisation, in total (with a reserve, runtime/shared-limit.ts), per token where the path
 * names one, and per agent.
 */
export type ConcurrencyLimits = { perAddress: number; overall: number; perToken?: number; perAgent?: number };

/** Limits of slots: of one key, and in total with a reserve for other organisations; either may be absent. */
export type Slots = { perKey?: number; overall?: number | SharedLimit };
/** Who takes a slot. `organisation`: its id; undefined: none is known. `amount`: how much of `overall` it takes; default 1. */
export type SlotHolder = { key: string; organisation?: string | undefined; amount?: number };

const MIB = 1024 * 1024;
/** Bytes of the bodies of requests that wait for a person. While such a request waits, it takes some five times as much memory. */
export const WAITING_BYTES = shareOf({ all: 32 * MIB, reserve: 8 * MIB, little: 8 * MIB });

export type RateLimits = {
  /** Counts a request, or `count` of them if all are permitted; 0 only returns what is left. */
  take(limit: Limit, key: string, count?: number): Promise<LimitResult>;
  /** Takes a slot. Returns the function that releases it; undefined when none is free. */
  enter(name: string, slots: Slots, holder: SlotHolder): (() => void) | undefined;
  /** Counts a 429 for the log. */
  refused: RefusalLog['refused'];
};

/**
 * Creates limits per minute by `counts`; `factor` multiplies them all. Slots are counted per process. The headers are those of
 * draft-ietf-httpapi-ratelimit-headers.
 */
export function makeRateLimits(factor: number, counts: WindowCounts, { refused }: RefusalLog): RateLimits {
  const taken = new Map<string, number>();
  const inUse = new Map<string, SharedUse>();
  const change = (name: string, by: 1 | -1) => {
    const now = (taken.get(name) ?? 0) + by;
    if (now > 0) taken.set(name, now);
    else taken.delete(name);
  };
  return {
    refused,
    take: async ({ name, perMinute }, key, count = 1) => {
      const limit = Math.max(1, Math.floor(perMinute * factor));
      const { allowed, left, leftMs } = await counts.take(`${name} ${key}`, limit, count);
      const seconds = Math.max(1, Math.ceil(leftMs / 1000));
      return {
        allowed,
        retryAfterSeconds: seconds,
        perMinute: limit,
        headers: {
          'RateLimit-Policy': `"${name}";q=${limit};w=60`,
          RateLimit: `"${name}";r=${left};t=${seconds}`,
        },
      };
    },
    enter: (name, { perKey = Number.POSITIVE_INFINITY, overall }, { key, organisation = '', amount = 1 }) => {
      const mine = `${name} ${organisation} ${key}`;
      if ((taken.get(mine) ?? 0) >= perKey) return undefined;
      const all = overall === undefined ? undefined : (inUse.get(name) ?? new SharedUse(limitOf(overall)));
      const share = all?.of(organisation);
      if (all && share && !all.hasRoom(share, amount)) return undefined;
      const count = (by: 1 | -1) => {
        change(mine, by);
        if (share) all?.count(share, by * amount);
      };
      if (all) inUse.set(name, all);
      count(1);
      let left = false;
      return () => {
        if (left) return;
        left = true;
        count(-1);
      };
    },
  };
}

const limitOf = (overall: number | SharedLimit): SharedLimit =>
  typeof overall === 'number' ? withReserve(overall) : overall;
