import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

/** So many requests in a minute, counted per agent or per client address. */
export type Limit = { name: string; perMinute: number; per: 'agent' | 'address' };

export type LimitResult = { allowed: boolean; headers: Record<string, string>; retryAfterSeconds: number };

export type RateLimits = { take(limit: Limit, key: string): Promise<LimitResult> };

/**
 * Counts in this process. Several replicas each allow the whole limit: a shared counter would cost every call a write.
 * `factor` multiplies all limits. The headers are those of draft-ietf-httpapi-ratelimit-headers.
 */
export function makeRateLimits(factor: number): RateLimits {
  const limiters = new Map<string, { limiter: RateLimiterMemory; points: number }>();
  const limiterOf = (limit: Limit) => {
    const found = limiters.get(limit.name);
    if (found) return found;
    const points = Math.max(1, Math.floor(limit.perMinute * factor));
    const made = { limiter: new RateLimiterMemory({ points, duration: 60 }), points };
    limiters.set(limit.name, made);
    return made;
  };
  return {
    take: async (limit, key) => {
      const { limiter, points } = limiterOf(limit);
      const answer = (result: RateLimiterRes, allowed: boolean): LimitResult => {
        const seconds = Math.max(1, Math.ceil(result.msBeforeNext / 1000));
        return {
          allowed,
          retryAfterSeconds: seconds,
          headers: {
            'RateLimit-Policy': `"${limit.name}";q=${points};w=60`,
            RateLimit: `"${limit.name}";r=${allowed ? result.remainingPoints : 0};t=${seconds}`,
          },
        };
      };
      try {
        return answer(await limiter.consume(key), true);
      } catch (rejection) {
        if (rejection instanceof RateLimiterRes) return answer(rejection, false);
        throw rejection;
      }
    },
  };
}

/** The part of an address that one client has to itself: IPv4 whole, IPv6 its /64, IPv4 in IPv6 as IPv4. */
export function clientKey(address: string): string {
  if (!address.includes(':')) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped) return mapped[1]!;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const tailGroups = tail === '' ? [] : tail.split(':');
    while (groups.length + tailGroups.length < 8) groups.push('0');
    groups.push(...tailGroups);
  }
  return `${groups.slice(0, 4).join(':')}::/64`;
}
