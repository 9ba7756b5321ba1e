/** Latencies in log-linear buckets: 64 per doubling, so that a quantile is off by less than 1 %. */

const BUCKETS_PER_DOUBLING = 64;
const LOG = 6;
/** Unit: 100 ns. 2^30 units are 107 s; longer latencies are counted as that. */
const UNITS_PER_MS = 10_000;
const MAX_UNITS = 2 ** 30;

/** All in milliseconds; zeros when nothing was recorded. */
export type Latency = { p50: number; p90: number; p99: number; max: number };

export type Histogram = {
  /** Records a latency in milliseconds. */
  record(ms: number): void;
  read(): Latency;
};

/** Creates an empty histogram. Recording allocates nothing, because it happens for every answer. */
export function createHistogram(): Histogram {
  const counts = new Uint32Array(BUCKETS_PER_DOUBLING * (30 - LOG + 2));
  let total = 0;
  let max = 0;

  function quantile(share: number): number {
    const rank = Math.ceil(total * share);
    let seen = 0;
    for (const [at, count] of counts.entries()) {
      seen += count;
      if (seen >= rank && seen > 0) return Math.min(middleOf(at) / UNITS_PER_MS, max);
    }
    return max;
  }

  return {
    record(ms) {
      const at = bucketOf(Math.min(MAX_UNITS, Math.round(ms * UNITS_PER_MS)));
      counts[at] = (counts[at] ?? 0) + 1;
      total++;
      if (ms > max) max = ms;
    },
    read: () => ({ p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99), max }),
  };
}

/** The first doubling is linear; in each later one the upper bits of the value say which of its 64 buckets. */
function bucketOf(units: number): number {
  if (units < BUCKETS_PER_DOUBLING) return units;
  const shift = 31 - Math.clz32(units) - LOG;
  return BUCKETS_PER_DOUBLING * shift + (units >>> shift);
}

function middleOf(bucket: number): number {
  if (bucket < BUCKETS_PER_DOUBLING) return bucket;
  const shift = Math.floor(bucket / BUCKETS_PER_DOUBLING) - 1;
  const low = (bucket - BUCKETS_PER_DOUBLING * shift) * 2 ** shift;
  return low + (2 ** shift - 1) / 2;
}
